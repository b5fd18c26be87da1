# For the repository of packages of Spack.
from spack.package import *


class Tilefs(Package):
    """Mounts a TileDB array or group read-only: attributes as plain files, slices as paths.

    Users other than root need fusermount3 of the system to mount; it is set-uid root. `tilefs
    serve`, `cat`, `ls` and `info` need no FUSE, for example on compute nodes."""

    homepage = "https://github.com/tilefs/tilefs"
    url = "https://github.com/tilefs/tilefs/releases/download/v0.1.0/tilefs-0.1.0.tar.gz"
    git = "https://github.com/tilefs/tilefs.git"

    license("MIT")

    version("0.1.0", sha256="@SHA256@")

    variant("cloud", default=True, description="Arrays in object stores")
    variant("serve", default=True, description="Serve files over HTTP and WebDAV")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")

    requires("platform=linux", msg="tilefs builds on Linux only")

    def install(self, spec, prefix):
        features = [name for name in ("cloud", "serve") if spec.satisfies(f"+{name}")]
        cargo = which("cargo", required=True)
        cargo(
            "build",
            "--release",
            "--locked",
            "--bin",
            "tilefs",
            "--no-default-features",
            "--features",
            ",".join(features),
            "--config",
            "profile.release.strip=true",
        )
        Executable("scripts/install.sh")("target/release/tilefs", prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_version(self):
        said = Executable(self.prefix.bin.tilefs)("--version", output=str)
        assert str(self.version) in said
