from tests.deploy.promql import Selector, grouping_labels, selectors

EXPRESSION = """
histogram_quantile(0.99, sum by (model, le) (rate(a_bucket{model=~"$model", code!~"x|y"}[$__rate_interval])))
  * on (instance) group_left (precision) job:b:rate5m > 1e3 and c
  unless on () group_left sum without (le) (d_total offset 5m)
"""


def test_every_metric_of_an_expression_is_found_with_its_labels() -> None:
    assert selectors(EXPRESSION) == [
        Selector(metric="a_bucket", labels=frozenset({"model", "code"})),
        Selector(metric="job:b:rate5m", labels=frozenset()),
        Selector(metric="c", labels=frozenset()),
        Selector(metric="d_total", labels=frozenset()),
    ]


def test_every_label_that_series_are_grouped_by_is_found() -> None:
    assert grouping_labels(EXPRESSION) == {"model", "le", "instance", "precision"}
