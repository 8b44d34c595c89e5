"""The server's side for agents: `llms.txt`, which lists what is here, and an MCP server (streamable HTTP) at `/mcp`.

A tool is an operation of the API (`operations`). The API itself carries it out, as a request with the same token (`requests`). So the
areas, the role, the limits, the checks and the audit log are those of the API, and a tool can do nothing that the API cannot.
"""
