"""`python -m msgsvc_core` is `msgsvc`."""

from msgsvc_core.cli.main import main

main()
