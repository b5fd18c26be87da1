//! Notifies the service manager that the mount is ready: systemd's `Type=notify`.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable with the notification socket; see sd_notify(3).
const SOCKET: &str = "NOTIFY_SOCKET";

/// The message of a service that has started.
const READY: &[u8] = b"READY=1\n";

/// Reports that the mount is ready, if the service manager has asked for it.
pub fn ready() {
    let Some(socket) = env::var_os(SOCKET) else { return };
    if let Err(error) = notify(&socket, READY) {
        log::warn!("cannot notify {SOCKET} {} that the mount is ready: {error}", socket.display());
    }
}

fn notify(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_abstract_sockets_are_notified() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("tilefs-test-{}", std::process::id());
        let with_path = UnixDatagram::bind(&path).unwrap();
        let without = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        notify(path.as_os_str(), READY).unwrap();
        notify(OsStr::new(&format!("@{name}")), READY).unwrap();
        for socket in [with_path, without] {
            let mut message = [0; 32];
            let length = socket.recv(&mut message).unwrap();
            assert_eq!(&message[..length], b"READY=1\n");
        }
        assert!(notify(OsStr::new("/nonexistent/notify"), READY).is_err());
    }
}
