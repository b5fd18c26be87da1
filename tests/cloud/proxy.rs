//! A proxy in front of a server: it records requests, delays them, and injects faults.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use support::http::Message;

/// The fault of a failing request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The server refuses: a status, the store's error code, and further headers.
    Status(u16, &'static str, Vec<(&'static str, String)>),
    /// The connection closes before an answer.
    Reset,
    /// No answer ever comes.
    Stall,
    /// The connection closes in the middle of the body.
    Cut,
    /// The body stalls in the middle.
    Hang,
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub range: Option<String>,
    pub if_match: Option<String>,
    pub is_signed: bool,
    /// Whether it has the token of temporary credentials.
    pub has_token: bool,
    /// The length of the longest chain of requests that ends with this one, each made after the previous one was
    /// answered.
    pub step: usize,
    /// Bytes of the answer's body.
    pub bytes: usize,
}

impl Asked {
    pub fn is_listing(&self) -> bool {
        self.target.contains("list-type=2") || self.target.contains("comp=list")
    }
}

struct Rule {
    concerns: Box<dyn Fn(&Asked) -> bool + Send>,
    fault: Fault,
    left: usize,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    rules: Vec<Rule>,
    answered: usize,
    in_flight: usize,
    most_in_flight: usize,
}

pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    delay: Duration,
    state: Mutex<State>,
    /// Stalled connections wait for the end of the test.
    over: (Mutex<bool>, Condvar),
}

impl Proxy {
    /// Delays each request by at least `delay`.
    pub fn start(server: SocketAddr, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { server, delay, state: Mutex::default(), over: Default::default() });
        let for_all = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = for_all.clone();
                thread::spawn(move || {
                    // Ignore clients that disconnect.
                    let _ = shared.serve(stream);
                });
            }
        });
        Proxy { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes the next `count` requests fail for which `concerns` returns true.
    pub fn fail(&self, count: usize, fault: Fault, concerns: impl Fn(&Asked) -> bool + Send + 'static) {
        self.shared.lock().rules.push(Rule { concerns: Box::new(concerns), fault, left: count });
    }

    pub fn recover(&self) {
        self.shared.lock().rules.clear();
    }

    /// Returns the requests since the last call, in order.
    pub fn take(&self) -> Vec<Asked> {
        let mut state = self.shared.lock();
        (state.answered, state.most_in_flight) = (0, state.in_flight);
        std::mem::take(&mut state.asked)
    }

    pub fn most_in_flight(&self) -> usize {
        self.shared.lock().most_in_flight
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        *self.shared.over.0.lock().unwrap() = true;
        self.shared.over.1.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut requests = BufReader::new(stream.try_clone()?);
        while let Some(request) = Message::read(&mut requests, true)? {
            let (number, step, fault) = self.begin(&request);
            thread::sleep(self.delay);
            let is_head = request.method() == "HEAD";
            let answer = match fault {
                Some(Fault::Reset) => {
                    self.end(number, step, 0);
                    return stream.shutdown(Shutdown::Both);
                }
                Some(Fault::Stall) => {
                    self.end(number, step, 0);
                    return self.wait_for_the_end();
                }
                Some(Fault::Status(status, code, ref headers)) => refusal(status, code, headers),
                Some(Fault::Cut | Fault::Hang) | None => self.origin_form(request).send(self.server)?,
            };
            let mut head = answer.clone();
            head.set("Connection", "keep-alive");
            stream.write_all(&head.head())?;
            if matches!(fault, Some(Fault::Cut | Fault::Hang)) {
                stream.write_all(&answer.body[..answer.body.len() / 2])?;
                self.end(number, step, answer.body.len() / 2);
                return match fault {
                    Some(Fault::Hang) => self.wait_for_the_end(),
                    _ => stream.shutdown(Shutdown::Both),
                };
            }
            // Counted before its last byte is sent, so that a client that has it finds it counted.
            self.end(number, step, answer.body.len());
            if !is_head {
                stream.write_all(&answer.body)?;
            }
        }
        Ok(())
    }

    /// A request to a proxy has an absolute URL; the server gets only the path.
    fn origin_form(&self, mut request: Message) -> Message {
        let path = request.second().strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| &rest[at..]));
        if let Some(path) = path {
            request.start = format!("{} {path} HTTP/1.1", request.method());
            request.set("Host", &self.server.to_string());
        }
        request
    }

    fn wait_for_the_end(&self) -> io::Result<()> {
        let over = self.over.0.lock().unwrap();
        let _over = self.over.1.wait_while(over, |over| !*over).unwrap();
        Ok(())
    }

    fn begin(&self, request: &Message) -> (usize, usize, Option<Fault>) {
        let mut state = self.lock();
        let step = state.answered + 1;
        let header = |name: &str| request.header(name).map(str::to_owned);
        let asked = Asked {
            method: request.method().to_owned(),
            target: request.second().to_owned(),
            range: header("Range").or_else(|| header("x-ms-range")),
            if_match: header("If-Match"),
            is_signed: header("Authorization").is_some(),
            has_token: header("x-amz-security-token").is_some(),
            step,
            bytes: 0,
        };
        let rule = state.rules.iter_mut().find(|rule| rule.left > 0 && (rule.concerns)(&asked));
        let fault = rule.map(|rule| {
            rule.left -= 1;
            rule.fault.clone()
        });
        state.asked.push(asked);
        state.in_flight += 1;
        state.most_in_flight = state.most_in_flight.max(state.in_flight);
        (state.asked.len() - 1, step, fault)
    }

    fn end(&self, number: usize, step: usize, bytes: usize) {
        let mut state = self.lock();
        state.in_flight -= 1;
        state.answered = state.answered.max(step);
        if let Some(asked) = state.asked.get_mut(number) {
            asked.bytes = bytes;
        }
    }
}

fn refusal(status: u16, code: &str, headers: &[(&str, String)]) -> Message {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>as the test wants</Message></Error>");
    let mut answer = Message::new(&format!("HTTP/1.1 {status} Refused"), body.as_bytes());
    answer.set("Content-Type", "application/xml");
    headers.iter().for_each(|(name, value)| answer.set(name, value));
    answer
}
