"""The subcommands of `lrcnet`, one file each; `lrcnet.command_parser.COMMANDS` lists them."""
