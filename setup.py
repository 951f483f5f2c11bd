"""Only what pyproject.toml can't say: two folders outside the package are installed inside it.

`policies/` as `guardhook/shipped_policies`, and the launcher's source, which is compiled on the user's machine, as
`guardhook/launcher_source`.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["guardhook*"]), "guardhook.shipped_policies", "guardhook.launcher_source"],
    package_dir={"guardhook.shipped_policies": "policies", "guardhook.launcher_source": "install/launcher"},
    package_data={
        "guardhook": ["py.typed"],
        "guardhook.shipped_policies": ["*.toml"],
        "guardhook.launcher_source": ["*.c", "*.in"],
    },
)
