"""How the commands speak: lines, tables, progress, exit codes."""
