# SPDX-License-Identifier: MIT
"""What is made of a trace, the file that `spcomm run --trace` writes: text, pictures, a page, other formats.

`reader` makes the `model` of a file, `cut` takes a part of it; `summary`, `matrix`, `page`, `picture` and `paje` show
it. Nothing here runs or knows nodes: the file is all there is.
"""
