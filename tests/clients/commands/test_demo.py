"""The picture of the demo: which word comes from which is what a first visitor can check."""

import demo
from dragoman import Client

RIGHT = {
    ("Meine", "My"),
    ("Schwester", "sister"),
    ("verkauft", "sold"),
    ("das", "the"),
    ("Haus", "house"),
    (".", "."),
}


def test_the_links_that_the_demo_draws_are_right():
    text = demo.PICTURED
    with demo.running_server(demo.MODELS) as address, Client(address) as client:
        (translation,) = client.translate([text], source="de", target="en", alignments=True)
    drawn = {
        (text[link.source_start : link.source_end], translation.text[link.target_start : link.target_end])
        for link in translation.hypotheses[0].alignments
    }
    assert drawn == RIGHT
