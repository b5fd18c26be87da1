# Mounts TileDB arrays as folders of plain files. Builds on Linux only.
class Tilefs < Formula
  desc "Mount a TileDB array or group read-only: attributes as plain files"
  homepage "https://github.com/tilefs/tilefs"
  url "https://github.com/tilefs/tilefs/releases/download/v0.1.0/tilefs-0.1.0.tar.gz"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "rust" => :build
  depends_on :linux

  def install
    args = std_cargo_args(root: buildpath/"built")
    system "cargo", "install", *args, "--config", "profile.release.strip=true"
    # The link that services use stays the same when the formula is upgraded.
    system "scripts/install.sh", "built/bin/tilefs", prefix, opt_prefix
  end

  def caveats
    <<~EOS
      Users other than root need fusermount3 to mount. It is set-uid root, so it
      comes from your distribution (Debian, Ubuntu, Fedora, Arch: fuse3).
      `tilefs serve`, `cat`, `ls` and `info` need no FUSE.
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tilefs --version")
    assert_match "TILEFS", shell_output("#{bin}/tilefs man --roff")
    assert_path_exists man1/"tilefs.1"
    assert_path_exists man7/"tilefs-paths.7"
  end
end
