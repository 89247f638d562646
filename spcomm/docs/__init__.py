# SPDX-License-Identifier: MIT
"""`spcomm docs`: the pages that come with spcomm, at the terminal or in a browser.

`pages`    the files, and one of them by its name
`browser`  a server on 127.0.0.1 that makes HTML of them
`command`  the command
"""
