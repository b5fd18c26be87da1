# `nix run github:tilefs/tilefs -- info ARRAY`, or `nix profile install github:tilefs/tilefs`.
{
  description = "Mount a TileDB array or group read-only: attributes as plain files, slices as paths";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs =
    { self, nixpkgs }:
    {
      packages = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (system: {
        default = nixpkgs.legacyPackages.${system}.callPackage ./packaging/nix/package.nix {
          src = self;
          lockFile = ./Cargo.lock;
        };
      });
    };
}
