"""Only what pyproject.toml can't say: the folder `policies/` is installed inside the package, as `guardhook/shipped_policies`."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["guardhook*"]), "guardhook.shipped_policies"],
    package_dir={"guardhook.shipped_policies": "policies"},
    package_data={"guardhook.shipped_policies": ["*.toml"]},
)
