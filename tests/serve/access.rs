//! Access with and without a token, and requests that are always refused.

use tilefs::serve::{ServeOptions, WithoutToken};

use crate::client::{Program, ask, demo, get, options, send, serve_toy, serve_toy_with};

/// Returns the options of a server that everybody needs a token for.
fn with_token(token: &str) -> ServeOptions {
    ServeOptions { token: Some(token.to_owned()), without_token: WithoutToken::Nobody, ..options() }
}

#[test]
fn without_its_token_a_server_gives_nothing() {
    let (server, address, _) = serve_toy_with(&with_token("s3cret"));
    for target in ["/hello.txt", "/", "/none", "/hello.txt?token=s3cre", "/hello.txt?token=s3cret2", "/..", "/.tilefs/"]
    {
        for method in ["GET", "HEAD", "PROPFIND", "PUT"] {
            let reply = ask(address, method, target, &["Authorization: Bearer wrong", "Depth: 1"]);
            assert_eq!(reply.status, 401, "{method} {target}");
            assert!(reply.header("www-authenticate").starts_with("Basic"));
            assert!(!String::from_utf8_lossy(&reply.body).contains("hello"));
        }
    }
    for header in ["Authorization: Bearer s3cret", "Authorization: Basic YW55Ym9keTpzM2NyZXQ="] {
        assert_eq!(ask(address, "GET", "/hello.txt", &[header]).body, b"hello\n");
        assert_eq!(ask(address, "PROPFIND", "/", &[header, "Depth: 0"]).status, 207);
    }
    assert_eq!(get(address, "/hello.txt?token=s3cret").body, b"hello\n");
    // People share links and addresses, so no page and no redirect has the token.
    let headers = ["Authorization: Bearer s3cret"];
    assert!(!ask(address, "GET", "/?token=s3cret2", &headers).text().contains("s3cret"));
    assert!(get(address, "/?token=s3cret").text().contains("<a href=\"hello.txt\">"));
    let folder = get(address, "/many?a=b&token=s3cret");
    assert_eq!((folder.status, folder.header("location"), folder.text()), (301, "/many/?a=b", "/many/?a=b\n".into()));
    assert!(get(address, "/.tilefs/stats.json?token=s3cret").json()["denied"].as_u64().unwrap() >= 28);
    server.stop();
}

/// A browser goes on without the token in its address, with a cookie.
#[test]
fn a_browser_keeps_the_token_out_of_its_address() {
    let (server, address, _) = serve_toy_with(&with_token("s3cret"));
    let html = "Accept: text/html,*/*";
    for (target, location) in [
        ("/?token=s3cret", "./"),
        ("/many/?token=s3cret&tab=Files", "./?tab=Files"),
        ("/hello.txt?token=s3cret", "./hello.txt"),
        ("//evil.example?token=s3cret", "./evil.example"),
    ] {
        let reply = ask(address, "GET", target, &[html]);
        assert_eq!((reply.status, reply.header("location")), (303, location), "{target}");
        let cookie = reply.header("set-cookie");
        assert!(cookie.contains("; HttpOnly; SameSite=Lax") && !cookie.contains("s3cret"), "{cookie}");
        let pair = format!("Cookie: {}", cookie.split(';').next().unwrap());
        assert_eq!(ask(address, "GET", "/", &[html, &pair]).status, 200);
        assert_eq!(ask(address, "GET", "/hello.txt", &[&pair]).body, b"hello\n");
        assert_eq!(ask(address, "GET", "/hello.txt", &[pair.split_at(pair.len() - 1).0]).status, 401);
    }
    assert_eq!(ask(address, "GET", "/?token=wrong", &[html]).status, 401);
    let behind = ask(address, "GET", "/?token=s3cret", &[html, "X-Forwarded-Prefix: /data"]);
    assert!(behind.header("set-cookie").contains("; Path=/data/;"), "{behind:?}");
    server.stop();
}

#[test]
fn nothing_can_be_written_over_http() {
    let server = Program::start(&demo(), &[]);
    let methods = [
        "PUT",
        "POST",
        "DELETE",
        "PATCH",
        "MKCOL",
        "COPY",
        "MOVE",
        "PROPPATCH",
        "LOCK",
        "UNLOCK",
        "TRACE",
        "CONNECT",
        "X",
    ];
    for method in methods {
        for target in ["/temp.f32", "/new", "/", "/dims/"] {
            let headers = ["Content-Length: 4", "Destination: /other"];
            let reply = ask(server.address, method, target, &headers);
            // The target of CONNECT is a host.
            let expected: &[u16] = if method == "CONNECT" { &[400, 405] } else { &[405] };
            assert!(expected.contains(&reply.status), "{method} {target}: {}", reply.status);
            assert!(reply.status == 400 || reply.header("allow") == "GET, HEAD, OPTIONS, PROPFIND", "{method}");
        }
    }
    let told = ask(server.address, "OPTIONS", "/temp.f32", &[]);
    assert_eq!((told.status, told.header("dav"), told.header("allow")), (204, "1", "GET, HEAD, OPTIONS, PROPFIND"));
    assert_eq!(ask(server.address, "OPTIONS", "*", &[]).status, 204);
}

#[test]
fn pages_of_others_read_only_where_that_is_allowed() {
    let origin = "Origin: https://viewer.example";
    let (server, address, _) = serve_toy();
    assert_eq!(ask(address, "GET", "/hello.txt", &[origin]).header("access-control-allow-origin"), "");
    server.stop();
    for (cors, vary) in [("*", ""), ("https://viewer.example", "Origin")] {
        let (server, address, _) = serve_toy_with(&ServeOptions { cors: Some(cors.to_owned()), ..with_token("t") });
        // A browser asks without the token.
        let asked = ask(address, "OPTIONS", "/hello.txt", &[origin, "Access-Control-Request-Method: GET"]);
        assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, cors));
        assert!(asked.header("access-control-allow-headers").contains("Range"));
        let reply = ask(address, "GET", "/hello.txt", &[origin, "Authorization: Bearer t"]);
        assert_eq!((reply.header("access-control-allow-origin"), reply.header("vary")), (cors, vary));
        assert!(reply.header("access-control-expose-headers").contains("Content-Range"));
        server.stop();
    }
}

/// A web page in a browser on this machine can give its own host name the address of this machine.
#[test]
fn a_server_of_this_machine_is_not_reached_under_another_name() {
    let (server, address, _) = serve_toy();
    let status = |host: &str| {
        let request = format!("GET /hello.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        send(address, request.as_bytes()).map(|reply| reply.status)
    };
    for host in ["localhost", "127.0.0.1", &address.to_string(), "[::1]:8080"] {
        assert_eq!(status(host), Some(200), "{host}");
    }
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        assert_eq!(status(host), Some(421), "{host}");
    }
    server.stop();
}

/// The pages of one origin may read. Those of others still must not, whatever name they give this machine.
#[test]
fn an_origin_that_may_read_does_not_let_in_others_under_their_names() {
    for (cors, of_others) in [("https://viewer.example", 421), ("*", 200)] {
        let (server, address, _) = serve_toy_with(&ServeOptions { cors: Some(cors.to_owned()), ..options() });
        let status = |host: &str| {
            let request = format!(
                "GET /hello.txt HTTP/1.1\r\nHost: {host}\r\nOrigin: https://viewer.example\r\nConnection: close\r\n\r\n"
            );
            send(address, request.as_bytes()).map(|reply| reply.status)
        };
        assert_eq!((status("localhost"), status("evil.example")), (Some(200), Some(of_others)), "{cors}");
        server.stop();
    }
}

/// An address of IPv4 that is written as one of IPv6 is still that of this machine.
#[test]
fn a_mapped_address_of_this_machine_is_reached_under_no_other_name() {
    let listen = "[::ffff:127.0.0.1]:0".parse().unwrap();
    let Ok(server) = tilefs::serve::HttpServer::start(
        support::toy::root(&std::sync::Arc::default()),
        &ServeOptions { listen, ..options() },
    ) else {
        return support::skip::skipped(support::skip::Need::BareSystem, "there is no IPv6");
    };
    let address = format!("127.0.0.1:{}", server.address().port()).parse().unwrap();
    let status = |host: &str| {
        let request = format!("GET /hello.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        send(address, request.as_bytes()).map(|reply| reply.status)
    };
    assert_eq!((status("[::ffff:127.0.0.1]:80"), status("evil.example")), (Some(200), Some(421)));
    server.stop();
}

/// The log names the folder, for those who run the server.
#[test]
fn clients_do_not_learn_where_the_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("of this machine/data");
    std::fs::create_dir_all(&place).unwrap();
    for name in ["demo", "other"] {
        support::stored::copy_folder(&demo(), &place.join(name));
    }
    // Damages each tile of one attribute.
    for fragment in std::fs::read_dir(place.join("demo/__fragments")).unwrap() {
        let file = fragment.unwrap().path().join("a0.tdb");
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.iter_mut().skip(20).for_each(|byte| *byte ^= 0x5A);
        std::fs::write(file, bytes).unwrap();
    }
    for (served, to_demo) in [(place.join("demo"), "/"), (place.clone(), "/demo/")] {
        let server = Program::start(&served, &[]);
        let get = |name: &str| get(server.address, &format!("{to_demo}{name}"));
        let refused = get("temp.f32");
        assert!(refused.status == 500 && refused.text().contains("damaged data"), "{refused:?}");
        let texts = [
            refused.text(),
            get("slice/none/temp.f32").text(),
            get("").text(),
            ask(server.address, "PROPFIND", to_demo, &["Depth: 1"]).text(),
            crate::client::get(server.address, "/").text(),
            crate::client::get(server.address, "/.tilefs/errors.txt").text(),
        ];
        for text in texts {
            assert!(!text.contains("of this machine") && !text.contains("/tmp"), "{text}");
        }
        assert!(crate::client::get(server.address, "/.tilefs/errors.txt").text().contains("demo"));
    }
}
