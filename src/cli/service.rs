//! Telling who started the mount as a service that it answers: systemd's `Type=notify`.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where a service says how it is, as sd_notify(3) has it.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The message of a service that has started.
const READY: &[u8] = b"READY=1\n";

/// Says that the mount answers, where somebody wants to know.
pub fn ready() {
    let Some(socket) = env::var_os(SOCKET) else { return };
    if let Err(error) = tell(&socket, READY) {
        log::warn!("cannot tell {SOCKET} {} that the mount is ready: {error}", socket.display());
    }
}

fn tell(socket: &OsStr, message: &[u8]) -> io::Result<()> {
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
    fn sockets_with_a_path_and_without_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("tilefs-test-{}", std::process::id());
        let with_path = UnixDatagram::bind(&path).unwrap();
        let without = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        tell(path.as_os_str(), READY).unwrap();
        tell(OsStr::new(&format!("@{name}")), READY).unwrap();
        for socket in [with_path, without] {
            let mut message = [0; 32];
            let length = socket.recv(&mut message).unwrap();
            assert_eq!(&message[..length], b"READY=1\n");
        }
        assert!(tell(OsStr::new("/nonexistent/notify"), READY).is_err());
    }
}
