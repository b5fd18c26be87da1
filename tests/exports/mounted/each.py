"""Runs a script beside this one for each of several arrays, and prints the path of the array before what the script
prints.

    each.py SCRIPT MOUNT ARRAY [MOUNT ARRAY ...]
"""

import os
import runpy
import sys

folder, (name, *pairs) = os.path.dirname(__file__), sys.argv[1:]
for mount, array in zip(pairs[::2], pairs[1::2]):
    print(array, end=" ", flush=True)
    sys.argv = [name, mount, array]
    runpy.run_path(os.path.join(folder, name))
