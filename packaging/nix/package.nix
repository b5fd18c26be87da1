# For nixpkgs (pkgs/by-name/ti/tilefs/package.nix), and for flake.nix, which builds the sources of its own commit.
{
  lib,
  rustPlatform,
  fetchurl,
  src ? fetchurl {
    url = "https://github.com/tilefs/tilefs/releases/download/v0.1.0/tilefs-0.1.0.tar.gz";
    sha256 = "@SHA256@";
  },
  # Where a checkout is at hand, as in flake.nix, its lock file says which crates; nixpkgs wants a copy beside this file.
  lockFile ? ./Cargo.lock,
}:

rustPlatform.buildRustPackage {
  pname = "tilefs";
  version = "0.1.0";
  inherit src;

  cargoLock = { inherit lockFile; };
  cargoBuildFlags = [
    "--bin"
    "tilefs"
  ];
  # The tests need /dev/fuse, and programs that open the files.
  doCheck = false;

  installPhase = ''
    runHook preInstall
    patchShebangs scripts/install.sh
    scripts/install.sh target/*/release/tilefs $out
    runHook postInstall
  '';

  meta = {
    description = "Mount a TileDB array or group read-only: attributes as plain files, slices as paths";
    longDescription = ''
      Users other than root need fusermount3 to mount. NixOS has it among its wrappers; elsewhere it comes from the
      distribution. `tilefs serve`, `cat`, `ls` and `info` need no FUSE.
    '';
    homepage = "https://github.com/tilefs/tilefs";
    license = lib.licenses.mit;
    mainProgram = "tilefs";
    platforms = lib.platforms.linux;
  };
}
