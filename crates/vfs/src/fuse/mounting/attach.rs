//! Mounts a FUSE device on a folder: with mount(2) if this process may, otherwise with the helper `fusermount3`.

use std::ffi::{CString, OsStr, OsString, c_int};
use std::fs::{self, File};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FileType, fstat, makedev};
use rustix::io::retry_on_intr;
use rustix::mount::{MountFlags, mount};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{geteuid, getgid, getuid};

use super::mount_table::KIND;
use crate::fuse::sys;

const DEVICE: &str = "/dev/fuse";

/// The number of that device; see Documentation/admin-guide/devices.txt of Linux.
const FUSE: (u32, u32) = (10, 229);

/// Exists if the kernel has SELinux; other kernels reject label options.
const SELINUX: &str = "/sys/fs/selinux";

/// Users who may access a mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// The user who mounted it.
    #[default]
    Owner,
    /// The user who mounted it, and root.
    OwnerAndRoot,
    /// Every user.
    Everyone,
}

/// Mounts a new FUSE device read-only at `mountpoint` (absolute, without links). Returns the device, on which the
/// kernel then sends FUSE_INIT. `source` appears in the mount table. `labels` are SELinux options, omitted without
/// SELinux, as in mount(8).
///
/// # Errors
/// One line that says what is missing and how to get it.
pub fn attach(mountpoint: &Path, source: &OsStr, access: Access, labels: &[OsString]) -> Result<OwnedFd, String> {
    let labels = if Path::new(SELINUX).is_dir() { labels } else { &[] };
    match File::options().read(true).write(true).open(DEVICE) {
        Ok(device) => match attach_directly(&device, mountpoint, source, access, labels) {
            Ok(()) => return Ok(device.into()),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && !geteuid().is_root() => {}
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                return Err(
                    "this process may not mount; a container needs `--cap-add SYS_ADMIN --device /dev/fuse`".into()
                );
            }
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                return Err("the kernel has no FUSE; as root, load it with `modprobe fuse`".into());
            }
            Err(error) => return Err(format!("the kernel refuses the mount: {error}")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!(
                "{DEVICE} is missing; as root, load it with `modprobe fuse`, or give it to the container with \
                 `--device {DEVICE} --cap-add SYS_ADMIN`"
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(format!("this user may not open {DEVICE}; as root, allow it with `chmod 666 {DEVICE}`"));
        }
        Err(error) => return Err(format!("cannot open {DEVICE}: {error}")),
    }
    if access != Access::Owner && !others_may_be_allowed() {
        return Err("--allow-other and --allow-root need the line `user_allow_other` in /etc/fuse.conf; as root, add \
                    it with `echo user_allow_other >> /etc/fuse.conf`"
            .into());
    }
    let helper = fusermount().ok_or(
        "mounting without being root needs the program fusermount3; install the package fuse3 (`sudo apt-get install \
         fuse3`)",
    )?;
    attach_with_helper(&helper, mountpoint, helper_options(source, access, labels))
}

/// Returns a copy of an inherited descriptor, on which the process that mounted has opened `/dev/fuse`.
///
/// # Errors
/// One line, if it is not open or not that device.
pub fn inherited(number: c_int) -> Result<OwnedFd, String> {
    let device = sys::copy_of_descriptor(number)
        .map_err(|_| "this descriptor is not open; the process that mounts must pass it on".to_owned())?;
    let kind = fstat(&device).map_err(|error| format!("cannot examine this descriptor: {error}"))?;
    let is_fuse =
        FileType::from_raw_mode(kind.st_mode) == FileType::CharacterDevice && kind.st_rdev == makedev(FUSE.0, FUSE.1);
    if is_fuse { Ok(device) } else { Err(format!("this descriptor is not {DEVICE}")) }
}

/// Finds the helper that mounts and unmounts for ordinary users.
pub fn fusermount() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Mount units run without a PATH.
    let usual = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).chain(usual).collect();
    ["fusermount3", "fusermount"]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
}

/// Returns the last line of the helper's error output, without the helper's name.
pub fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("fusermount3 failed without a reason");
    match line.split_once(": ") {
        Some((name, rest)) if name.contains("fusermount") => rest.trim().to_owned(),
        _ => line.trim().to_owned(),
    }
}

fn attach_directly(
    device: &File,
    mountpoint: &Path,
    source: &OsStr,
    access: Access,
    labels: &[OsString],
) -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let others = if access == Access::Owner { "" } else { ",allow_other" };
    let descriptor = device.as_raw_fd();
    let mut data = OsString::from(format!(
        "fd={descriptor},rootmode=40000,user_id={user},group_id={group},default_permissions{others}"
    ));
    for label in labels {
        data.push(",");
        data.push(label);
    }
    let data = CString::new(data.into_vec())?;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    Ok(mount(source, mountpoint, KIND, flags, &*data)?)
}

/// Runs the helper, which mounts and sends the open device through the socket whose descriptor is in the environment.
fn attach_with_helper(helper: &Path, mountpoint: &Path, options: OsString) -> Result<OwnedFd, String> {
    let failed = |error: io::Error| format!("cannot run {}: {error}", helper.display());
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let child = Command::new(helper)
        .arg("-o")
        .arg(options)
        .arg("--")
        .arg(mountpoint)
        .env("_FUSE_COMMFD", "0")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let device = receive_descriptor(&ours);
    let output = child.wait_with_output().map_err(failed)?;
    match device {
        Ok(Some(device)) => Ok(device),
        Ok(None) => Err(complaint(&output.stderr)),
        Err(error) => Err(format!("{}: {error}", complaint(&output.stderr))),
    }
}

/// Receives one file descriptor sent with one byte of data; `None` if the peer closed the socket.
///
/// # Errors
/// The errors of recvmsg(2), or `InvalidData` for a message without a descriptor.
fn receive_descriptor(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC))?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let none = || io::Error::new(io::ErrorKind::InvalidData, "a message without a file descriptor");
    descriptors.next().map(Some).ok_or_else(none)
}

fn helper_options(source: &OsStr, access: Access, labels: &[OsString]) -> OsString {
    let mut options = b"ro,nosuid,nodev,noatime,default_permissions,subtype=tilefs,".to_vec();
    if access != Access::Owner {
        options.extend_from_slice(b"allow_other,");
    }
    for label in labels {
        options.extend_from_slice(label.as_bytes());
        options.push(b',');
    }
    options.extend_from_slice(b"fsname=");
    for &byte in source.as_bytes() {
        // Options are separated by commas; a backslash escapes a comma or a backslash.
        if byte == b',' || byte == b'\\' {
            options.push(b'\\');
        }
        options.push(byte);
    }
    OsString::from_vec(options)
}

/// Returns whether /etc/fuse.conf lets users share their mounts.
fn others_may_be_allowed() -> bool {
    // If it is unreadable, leave the decision to the helper.
    fs::read_to_string("/etc/fuse.conf").map_or(true, |text| allows_others(&text))
}

fn allows_others(configuration: &str) -> bool {
    configuration.lines().any(|line| line.trim() == "user_allow_other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_backslashes_of_the_source_are_escaped() {
        assert_eq!(
            helper_options(OsStr::new(r"/data/a,allow_other\"), Access::Owner, &[]),
            r"ro,nosuid,nodev,noatime,default_permissions,subtype=tilefs,fsname=/data/a\,allow_other\\"
        );
        let shared = helper_options(OsStr::new("s"), Access::OwnerAndRoot, &["context=a".into()]);
        assert!(shared.to_string_lossy().contains(",allow_other,context=a,fsname=s"));
    }

    #[test]
    fn a_closed_socket_sends_no_descriptor_and_plain_bytes_are_refused() {
        use std::io::Write;
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        assert!(receive_descriptor(&here).unwrap().is_none());
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"x").unwrap();
        assert_eq!(receive_descriptor(&here).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn only_a_fuse_device_is_inherited() {
        let file = File::open("/dev/null").unwrap();
        assert!(inherited(file.as_raw_fd()).unwrap_err().contains("not /dev/fuse"));
        assert!(inherited(c_int::MAX).unwrap_err().contains("not open"));
        if let Ok(device) = File::open(DEVICE) {
            assert!(inherited(device.as_raw_fd()).is_ok());
        }
    }

    #[test]
    fn a_descriptor_that_is_sent_is_received() {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
        use std::os::fd::AsFd;
        use std::os::unix::fs::MetadataExt;
        let (here, there) = UnixStream::pair().unwrap();
        let file = File::open("/dev/null").unwrap();
        let sent = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&sent)));
        sendmsg(&there, &[io::IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        let received = File::from(receive_descriptor(&here).unwrap().expect("it was sent"));
        assert_eq!(received.metadata().unwrap().rdev(), file.metadata().unwrap().rdev());
    }

    #[test]
    fn the_configuration_allows_others_only_on_a_line_of_its_own() {
        assert!(allows_others("# hello\nmount_max = 10\nuser_allow_other\n"));
        assert!(!allows_others("#user_allow_other\n# user_allow_other is a line\n"));
    }

    #[test]
    fn errors_of_the_helper_lose_its_name() {
        assert_eq!(complaint(b"fusermount3: no access\n\n"), "no access");
        assert_eq!(complaint(b"more\n/usr/bin/fusermount3: failed to open: no\n"), "failed to open: no");
        assert_eq!(complaint(b""), "fusermount3 failed without a reason");
    }
}
