#!/bin/bash
# SPDX-License-Identifier: MIT
# Gradescope runs this once, as root, while it builds the image: Ubuntu 22.04, whose own Python is too old.
# It is at the top of the archive, with spcomm's sources (spcomm-*.tar.gz) or a wheel for Python 3.11.
set -e
apt-get update
apt-get install -y python3.11 python3.11-venv python3.11-dev gcc bubblewrap
python3.11 -m venv /opt/spcomm
/opt/spcomm/bin/pip install "${AUTOGRADER:-/autograder}"/source/spcomm-*
ln -s /opt/spcomm/bin/spcomm /usr/local/bin/spcomm
useradd --no-create-home student
