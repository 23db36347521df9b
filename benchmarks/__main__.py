"""`python -m benchmarks SCENARIO [options]`: finds the scenarios, and loads the one that is asked for."""

import ast
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from benchmarks import scenarios


class Scenarios(click.Group):
    """The modules and packages of `benchmarks.scenarios`, by their names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(scenarios.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"benchmarks.scenarios.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Scenarios"):
            formatter.write_dl([(name, summary(name)) for name in self.list_commands(ctx)])


def summary(name: str) -> str:
    """The first line of a scenario's docstring, read from its source: importing it may take seconds."""
    spec = find_spec(f"benchmarks.scenarios.{name}")
    assert spec is not None
    assert spec.origin is not None
    return (ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or "").partition(
        "\n"
    )[0]


def _list(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        assert isinstance(main, Scenarios)
        click.echo("\n".join(f"{name:14}{summary(name)}" for name in main.list_commands(context)))
        context.exit()


@click.group(cls=Scenarios, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--list", is_flag=True, callback=_list, expose_value=False, help="Say what can be measured.")
def main() -> None:
    """Measure one scenario, side by side and in turns; SCENARIO --help says how."""


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
