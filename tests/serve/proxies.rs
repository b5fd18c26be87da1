//! WebDAV clients behind nginx, which serves the tree below a path of its own.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use crate::client::{Program, demo, eventually, send};
use crate::tools::{has, output};
use support::skip::python_with;

/// nginx with the tree below `/deep/data/`, until dropped.
struct Nginx {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// Passes requests on to a server, with a further setting.
    fn start(server: &Program, setting: &str) -> Nginx {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let place = folder.path().display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {place}/{kind};\n"))
            .concat();
        let user = if support::skip::is_root() { "user root;" } else { "" };
        let configuration = format!(
            "daemon off; master_process off; {user} pid {place}/pid; error_log {place}/error.log;\n\
             events {{}}\nhttp {{\n{temporary}access_log off;\nserver {{ listen 127.0.0.1:{port};\n\
             location /deep/data/ {{ proxy_pass http://{}/; {setting} }} }} }}\n",
            server.address
        );
        fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-c").arg(folder.path().join("nginx.conf")).arg("-p").arg(folder.path());
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("nginx starts");
        let nginx = Nginx { child, port, _folder: folder };
        eventually("nginx listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        nginx
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/deep/data/", self.port)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a proxy may be told to say about the path that it has removed.
const SETTINGS: [&str; 3] = [
    "",
    "proxy_set_header X-Forwarded-Prefix /deep/data;",
    "proxy_http_version 1.1; proxy_set_header Host $http_host;",
];

#[test]
fn clients_list_and_read_what_a_proxy_serves_below_a_path() {
    if !has("nginx") {
        return;
    }
    let server = Program::start(&demo(), &[]);
    let expected = crate::client::get(server.address, "/dims/y.i64").body;
    let folder = tempfile::tempdir().unwrap();
    for setting in SETTINGS {
        let nginx = Nginx::start(&server, setting);
        let url = nginx.url();
        let address: SocketAddr = format!("127.0.0.1:{}", nginx.port).parse().unwrap();
        let ask = |request: &str| {
            let head = format!("{request} HTTP/1.1\r\nHost: {address}\r\nDepth: 1\r\nConnection: close\r\n\r\n");
            send(address, head.as_bytes()).unwrap()
        };
        let reply = ask("PROPFIND /deep/data/dims/");
        assert!(reply.status == 207 && !reply.text().contains("<D:href>/dims"), "{setting}: {}", reply.text());
        let moved = ask("GET /deep/data/dims");
        let location = if setting.contains("Prefix") { "/deep/data/dims/" } else { "./dims/" };
        assert_eq!((moved.status, moved.header("location")), (301, location), "{setting}");
        if has("rclone") {
            let mut rclone = Command::new("rclone");
            rclone.args(["--config", "", "lsf", "-R", &format!(":webdav,url='{url}':")]);
            let listed = String::from_utf8(output(&mut rclone)).unwrap();
            assert!(listed.contains("temp.f32\n") && listed.contains("dims/y.i64\n"), "{setting}: {listed}");
        }
        if has("cadaver") {
            let (copy, home) = (folder.path().join("copy"), folder.path().join("home"));
            let _ = fs::remove_file(&copy);
            fs::create_dir_all(&home).unwrap();
            let script = format!("printf 'cd dims\\nls\\nget y.i64 {}\\nquit\\n' | cadaver {url}", copy.display());
            let told = output(Command::new("sh").args(["-c", &script]).env("HOME", &home));
            let told = String::from_utf8_lossy(&told).into_owned();
            assert!(told.contains("y.i64") && told.contains("x.i64"), "{setting}: {told}");
            assert!(fs::read(&copy).unwrap() == expected, "{setting}: {told}");
        }
        if let Some(python) = python_with("webdav4.client") {
            let script = "
import io, sys
from webdav4.client import Client
client, bytes = Client(sys.argv[1]), io.BytesIO()
assert {'temp.f32', 'dims'} <= {entry['name'].rstrip('/') for entry in client.ls('', detail=True)}
assert sorted(entry['name'] for entry in client.ls('dims', detail=True)) == ['dims/x.i64', 'dims/y.i64']
client.download_fileobj('dims/y.i64', bytes)
assert len(bytes.getvalue()) == 800 and client.info('dims/y.i64')['content_length'] == 800
";
            // It takes no relative URLs.
            if setting.contains("Prefix") {
                output(Command::new(python).args(["-c", script]).arg(&url));
            }
        }
    }
}

/// The same clients without a proxy. webdav4 asks for a file without a depth.
#[test]
fn clients_list_and_read_a_server() {
    let server = Program::start(&demo(), &[]);
    if has("cadaver") {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("printf 'ls\\nget dims/y.i64 copy\\nquit\\n' | cadaver {}", server.url());
        let mut shell = Command::new("sh");
        let told = output(shell.args(["-c", &script]).current_dir(&folder).env("HOME", folder.path()));
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(told.contains("temp.f32") && fs::read(folder.path().join("copy")).unwrap().len() == 800, "{told}");
    }
    if let Some(python) = python_with("webdav4.client") {
        let script = "
import sys
from webdav4.client import Client
client = Client(sys.argv[1])
assert client.isfile('temp.f32') and client.content_length('temp.f32') == 80000
assert sorted(client.ls('dims', detail=False)) == ['dims/x.i64', 'dims/y.i64']
";
        output(Command::new(python).args(["-c", script]).arg(server.url()));
    }
}
