"""Define the groups of verbs: `list` stands for `ls`, which also runs if no verb is given."""

import click


class VerbGroup(click.Group):
    """A group that runs its verb `ls` if no verb is given, and `ls` needs no argument."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb; `list` is another name of `ls`."""
        return super().get_command(ctx, "ls" if cmd_name == "list" else cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the verb `ls` if no verb is given and the group has no action of its own."""
        has_verb = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        if not (has_verb or ctx.resilient_parsing or self.invoke_without_command):
            ls = self.commands.get("ls")
            if ls and not any(param.required for param in ls.params):
                args = ["ls", *args]
        return super().parse_args(ctx, args)
