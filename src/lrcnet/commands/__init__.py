"""The subcommands of `lrcnet`, one file each; `lrcnet.cli.COMMANDS` lists them."""
