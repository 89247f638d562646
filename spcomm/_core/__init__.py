# SPDX-License-Identifier: MIT
"""The only part of spcomm that touches C. Not public: `spcomm` re-exports the public names."""
