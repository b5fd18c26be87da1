//! The user at the other end of a connection within this machine: the owner of the client's socket, as the kernel lists
//! it.
//!
//! The kernel is asked for this one socket (`sock_diag(7)`). Where it answers no such questions, its lists of all sockets
//! are read instead (`/proc/net/tcp`, `proc(5)`).

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Result;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use rustix::process::geteuid;

/// The lists of sockets. Those of IPv6 include sockets that use it to speak IPv4.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Returns whether the client of a connection with these ends has a socket of the user of this process. Where the kernel
/// cannot tell, it has not: outside of this machine, in another network namespace, and if the client has closed it.
pub fn is_own(client: SocketAddr, server: SocketAddr) -> bool {
    let own = geteuid().as_raw();
    !is_ambiguous(own) && owner(client, server) == Some(own)
}

/// Returns the owner of the client's socket.
fn owner(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let ends = Ends { client: canonical(client), server: canonical(server) };
    if !ends.client.ip().is_loopback() || !ends.server.ip().is_loopback() {
        return None;
    }
    /// Whether the kernel has answered: then a socket that it does not know is gone.
    static ANSWERS: AtomicBool = AtomicBool::new(false);
    match ask(&ends) {
        Ok(Some(owner)) => {
            ANSWERS.store(true, Ordering::Relaxed);
            Some(owner)
        }
        Ok(None) if ANSWERS.load(Ordering::Relaxed) => None,
        _ => search(&ends),
    }
}

/// Returns an address of IPv4 as such, even if it is written as one of IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns whether other users, too, may have this id: it stands for all users that a user namespace has no ids for.
fn is_ambiguous(user: u32) -> bool {
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse().ok();
    let maps_all = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
    user == number("/proc/sys/kernel/overflowuid").unwrap_or(65534)
        && !fs::read_to_string("/proc/self/uid_map").is_ok_and(maps_all)
}

/// The ends of a connection, of one family.
struct Ends {
    client: SocketAddr,
    server: SocketAddr,
}

/// Numbers of `linux/netlink.h`, `sock_diag.h` and `inet_diag.h`, and the lengths of their structures in bytes.
const BY_FAMILY: u16 = 20;
const IS_REQUEST: u16 = 1;
const TCP: u8 = 6;
const ANY_COOKIE: [u8; 8] = [0xFF; 8];
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;

/// Places in the message about a socket: those of its `inet_diag_msg`.
const PORTS: usize = HEADER + 4;
const USER: usize = HEADER + 64;
const INODE: usize = HEADER + 68;

/// Asks the kernel for the owner of the client's socket; `None` if there is no such socket, or nobody holds it any more.
///
/// # Errors
/// If the kernel takes no questions.
fn ask(ends: &Ends) -> Result<Option<u32>> {
    let flags = SocketFlags::CLOEXEC;
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG))?;
    let question = question(ends);
    send(&kernel, &question, SendFlags::empty())?;
    let mut answer = [0; 512];
    // The answer is there when the question has been sent.
    let (_, length) = recv(&kernel, &mut answer, RecvFlags::DONTWAIT)?;
    let answer = answer.get(..length).unwrap_or_default();
    let is_of_socket = answer.get(4..6) == Some(&BY_FAMILY.to_ne_bytes());
    // Without a connected socket, the kernel answers with one that listens on the same port.
    let is_asked_for = answer.get(PORTS..PORTS + 4) == Some(&ports(ends));
    let is_held = number(answer, INODE).is_some_and(|inode| inode != 0);
    Ok(number(answer, USER).filter(|_| is_of_socket && is_asked_for && is_held))
}

/// Returns the message that asks for a socket: `nlmsghdr` and `inet_diag_req_v2`.
fn question(ends: &Ends) -> Vec<u8> {
    let mut message = Vec::with_capacity(REQUEST);
    message.extend((REQUEST as u32).to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(IS_REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    let family = if ends.client.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    message.extend([family.as_raw() as u8, TCP, 0, 0]);
    // In any state.
    message.extend(u32::MAX.to_ne_bytes());
    message.extend(ports(ends));
    for end in [ends.client, ends.server] {
        let start = message.len();
        match end.ip() {
            IpAddr::V4(address) => message.extend(address.octets()),
            IpAddr::V6(address) => message.extend(address.octets()),
        }
        message.resize(start + 16, 0);
    }
    // On any interface.
    message.extend([0; 4]);
    message.extend(ANY_COOKIE);
    message
}

/// Returns the ports as the kernel writes them.
fn ports(ends: &Ends) -> [u8; 4] {
    let ([a, b], [c, d]) = (ends.client.port().to_be_bytes(), ends.server.port().to_be_bytes());
    [a, b, c, d]
}

fn number(message: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(message.get(place..place + 4)?.try_into().ok()?))
}

/// Looks for the client's socket in the lists of all sockets; `None` as for [`ask`].
fn search(ends: &Ends) -> Option<u32> {
    LISTS.iter().find_map(|list| {
        let is_v6 = list.ends_with('6');
        let wanted = [listed(ends.client, is_v6)?, listed(ends.server, is_v6)?];
        let lines = BufReader::new(File::open(list).ok()?).lines().map_while(std::result::Result::ok);
        lines.filter_map(|line| owner_in(&line, &wanted)).next()
    })
}

/// Returns the owner in a line of a list if it is about the socket with these ends, and somebody holds it.
fn owner_in(line: &str, ends: &[String; 2]) -> Option<u32> {
    let mut fields = line.split_whitespace().skip(1);
    if fields.next()? != ends[0] || fields.next()? != ends[1] {
        return None;
    }
    let (owner, inode) = (fields.nth(4)?.parse().ok()?, fields.nth(1)?);
    (inode != "0").then_some(owner)
}

/// Returns an address as a list has it: words of the machine's byte order. `None` if the list has no such addresses.
fn listed(address: SocketAddr, is_v6: bool) -> Option<String> {
    let octets = match address.ip() {
        IpAddr::V4(address) if !is_v6 => address.octets().to_vec(),
        IpAddr::V4(address) => address.to_ipv6_mapped().octets().to_vec(),
        IpAddr::V6(address) if is_v6 => address.octets().to_vec(),
        IpAddr::V6(_) => return None,
    };
    let words = octets.chunks_exact(4).filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)));
    let words: String = words.map(|word| format!("{word:08X}")).collect();
    Some(format!("{words}:{:04X}", address.port()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Returns the ends of a connection of this process, and its sockets.
    fn connected(listen: &str, connect: &str) -> Option<(Ends, [TcpStream; 2])> {
        let listener = TcpListener::bind((listen, 0)).ok()?;
        let client = TcpStream::connect((connect, listener.local_addr().unwrap().port())).unwrap();
        let (server, _) = listener.accept().unwrap();
        let ends =
            Ends { client: canonical(server.peer_addr().unwrap()), server: canonical(server.local_addr().unwrap()) };
        Some((ends, [client, server]))
    }

    /// The question and the list are two ways to the same answer, whatever the families of the two sockets.
    #[test]
    fn both_ways_find_the_owner_of_a_socket_that_is_held() {
        let own = Some(geteuid().as_raw());
        for (listen, connect) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("0.0.0.0", "127.0.0.2"),
            ("::1", "::1"),
            ("::", "127.0.0.1"),
            ("::", "::ffff:127.0.0.1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
        ] {
            let Some((ends, [client, server])) = connected(listen, connect) else { continue };
            assert_eq!((ask(&ends), search(&ends)), (Ok(own), own), "{listen} {connect}");
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!((ask(&ends), search(&ends)), (Ok(own), own), "{listen} {connect}: sends nothing more");
            // The kernel keeps a closed socket for a while, as root's.
            drop(client);
            assert_eq!((ask(&ends), search(&ends)), (Ok(None), None), "{listen} {connect}: closed");
            drop(server);
        }
    }

    /// A socket that listens on the client's port is not the client's.
    #[test]
    fn a_listening_socket_is_not_taken_for_the_client() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (client, server) = (listener.local_addr().unwrap(), "127.0.0.1:9".parse().unwrap());
        let ends = Ends { client, server };
        assert_eq!((ask(&ends), search(&ends)), (Ok(None), None));
    }

    #[test]
    fn nobody_owns_what_comes_from_elsewhere() {
        let (near, far) = ("127.0.0.1:80".parse().unwrap(), "192.0.2.1:80".parse().unwrap());
        assert_eq!((owner(far, near), owner(near, far)), (None, None));
    }
}
