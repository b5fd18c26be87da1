//! A request and its reply in the HTTP library's types: who may read, which methods exist, and the headers of all
//! replies.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONNECTION, HeaderName, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, SET_COOKIE, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use tilefs_vfs::reports::is_report;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{answer, wants_html};
use super::connection::body::{Ongoing, ReplyBody};
use super::connection::peer::{LOOK, Peer, Watch};
use super::connection::workers::Workers;
use super::http::access::{AccessRules, Denied, without_token};
use super::http::path::TreePath;
use super::http::proxy::Root;
use super::message::{Answer, Question};
use super::site::Site;

/// The supported methods.
const METHODS: &str = "GET, HEAD, OPTIONS, PROPFIND";

/// Maximum size of the body of a PROPFIND.
const MAX_BODY: usize = 16 << 10;

/// A request whose first bytes are not made after this time is a long one.
const LONG: Duration = Duration::from_secs(1);

/// Maximum number of long requests: half of the threads of [`Workers`], so that short ones always find a thread.
const MOST_LONG: usize = 128;

/// Maximum number of threads that answer for the files in which the server reports about itself.
const REPORT_THREADS: usize = 4;

/// The state that all requests of a server share.
pub struct Service {
    pub site: Arc<Site>,
    workers: Arc<Workers>,
    /// The threads for reports, which must be readable when all others are busy.
    report_workers: Arc<Workers>,
    access: AccessRules,
    /// The port that the server listens on.
    port: u16,
    /// The origin whose pages may read, or `*`.
    cors: Option<String>,
    /// How long a client may take to send the head of a request or its body, and how long it may receive nothing of a
    /// reply.
    pub client_timeout: Duration,
    /// A permit for each long request.
    long: Semaphore,
}

impl Service {
    pub fn new(
        site: Arc<Site>,
        access: AccessRules,
        port: u16,
        cors: Option<String>,
        client_timeout: Duration,
    ) -> Arc<Self> {
        Arc::new(Service {
            site,
            workers: Arc::new(Workers::new(MOST_LONG * 2)),
            report_workers: Arc::new(Workers::new(REPORT_THREADS)),
            access,
            port,
            cors,
            client_timeout,
            long: Semaphore::new(MOST_LONG),
        })
    }

    /// Replies to a request of a client.
    ///
    /// # Errors
    /// None: each failure has a status.
    pub async fn reply(
        self: Arc<Self>,
        peer: Arc<Peer>,
        request: Request<Incoming>,
    ) -> Result<Response<ReplyBody>, Infallible> {
        self.site.counts.request(request.method());
        let mut ongoing = Ongoing::new(peer, self.client_timeout);
        let has_unread_body = !request.body().is_end_stream() && request.method().as_str() != "PROPFIND";
        let answer = self.answer(request, &mut ongoing).await;
        let answer = if has_unread_body {
            // The body is not read, so the next request on this connection could not be found.
            answer.with(CONNECTION, "close")
        } else {
            answer
        };
        Ok(self.response(answer, ongoing))
    }

    async fn answer(&self, request: Request<Incoming>, ongoing: &mut Ongoing) -> Answer {
        let (head, body) = request.into_parts();
        // Browsers first ask whether they may send a request (a preflight), without the token that the request will
        // have.
        if head.method == Method::OPTIONS {
            let answer = Answer::empty(StatusCode::NO_CONTENT).with(ALLOW, METHODS);
            return answer
                .with(HeaderName::from_static("dav"), "1")
                .with(HeaderName::from_static("ms-author-via"), "DAV");
        }
        let granted = match self.access.check(&head.headers, head.uri.query(), || ongoing.peer.is_own()) {
            Ok(granted) => granted,
            Err(denied) => {
                self.site.counts.denied();
                return refuse(denied);
            }
        };
        let query = head.uri.query().and_then(without_token);
        let root = Root::of(&head.headers, head.version, self.port);
        let cookie = granted.needs_cookie.then(|| self.access.cookie(&format!("{}/", root.path()))).flatten();
        let known = |answer: Answer| cookie.iter().fold(answer, |answer, cookie| answer.with(SET_COOKIE, cookie));
        if granted.by_address && head.method == Method::GET && wants_html(&head.method, &head.headers) {
            return known(without_its_token(head.uri.path(), query.as_deref()));
        }
        // While a body is awaited, the connection counts as one that waits for a request, and can be closed.
        let body = match head.method.as_str() {
            "GET" | "HEAD" => Bytes::new(),
            "PROPFIND" => match timeout(self.client_timeout, read_all(body)).await {
                Ok(Some(body)) => body,
                Ok(None) => return Answer::line(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long, or was cut off"),
                Err(_) => return Answer::line(StatusCode::REQUEST_TIMEOUT, "the body did not come"),
            },
            _ => {
                let answer = Answer::line(StatusCode::METHOD_NOT_ALLOWED, "nothing here can be changed");
                return answer.with(ALLOW, METHODS);
            }
        };
        let is_report = TreePath::parse(head.uri.path()).is_ok_and(|path| is_report(path.names()));
        if !ongoing.begin(is_report).await {
            return self.overloaded("as many requests as possible are being answered; ask again in a while");
        }
        let question = Question {
            path: head.uri.path().to_owned(),
            query,
            root,
            method: head.method,
            headers: head.headers,
            body,
        };
        known(self.made(question, is_report, ongoing).await)
    }

    /// Has an answer made on a thread. Ends the work if the client is gone, or if it is long and there are many such.
    async fn made(&self, question: Question, is_report: bool, ongoing: &Ongoing) -> Answer {
        let (site, token) = (Arc::clone(&self.site), ongoing.cancel.0.clone());
        let began = Arc::new(OnceLock::new());
        let begin = Arc::clone(&began);
        let workers = if is_report { &self.report_workers } else { &self.workers };
        let mut answered = pin!(workers.run(token.clone(), move || {
            begin.get_or_init(Instant::now);
            answer(&site, &question)
        }));
        let (asked, mut watch, mut permit) = (Instant::now(), Watch::default(), None);
        loop {
            if let Ok(answered) = timeout(LOOK, answered.as_mut()).await {
                let failed =
                    || Answer::line(StatusCode::SERVICE_UNAVAILABLE, "no thread could answer; the log says why");
                return answered.unwrap_or_else(|_| failed());
            }
            if watch.is_gone(&ongoing.peer) {
                token.cancel();
                return Answer::line(StatusCode::SERVICE_UNAVAILABLE, "nobody waits for the reply any more");
            }
            let is_late = match began.get() {
                Some(began) if began.elapsed() >= LONG && permit.is_none() && !is_report => {
                    permit = self.long.try_acquire().ok();
                    permit.is_none()
                }
                Some(_) => false,
                None => asked.elapsed() >= self.client_timeout,
            };
            if is_late {
                token.cancel();
                return self.overloaded("too many requests are being answered that take long; ask again in a while");
            }
        }
    }

    /// Returns the answer to a request for which there are no means now.
    fn overloaded(&self, why: &str) -> Answer {
        self.site.counts.refused();
        let answer = Answer::line(StatusCode::SERVICE_UNAVAILABLE, why).with(RETRY_AFTER, "1");
        answer.with(CONNECTION, "close")
    }

    fn response(&self, answer: Answer, ongoing: Ongoing) -> Response<ReplyBody> {
        let answer = answer.with(X_CONTENT_TYPE_OPTIONS, "nosniff").with(REFERRER_POLICY, "no-referrer");
        let answer = match &self.cors {
            None => answer,
            Some(origin) => share(answer, origin),
        };
        let Answer { status, headers, first, length, rest } = answer;
        let body = ReplyBody::new(first, length, rest, &self.workers, &self.site.counts, ongoing);
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// Returns the answer that leads a browser to the same page without the token in its address, which people share.
fn without_its_token(path: &str, query: Option<&str>) -> Answer {
    // Relative, because a proxy may have removed the beginning of the path.
    let name = path.rsplit('/').next().unwrap_or_default();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let location = format!("./{name}{query}");
    Answer::line(StatusCode::SEE_OTHER, &location).with(LOCATION, location)
}

fn refuse(denied: Denied) -> Answer {
    match denied {
        Denied::Token => {
            let answer = Answer::line(StatusCode::UNAUTHORIZED, "this server needs its token");
            // Browsers and file managers ask for a password, which is the token.
            answer.with(WWW_AUTHENTICATE, "Basic realm=\"tilefs\", charset=\"UTF-8\"")
        }
        Denied::User => Answer::line(
            StatusCode::FORBIDDEN,
            "only the user who started this server can read it: others can if it is started with --token TOKEN or --allow-other",
        ),
        Denied::Host => Answer::line(
            StatusCode::MISDIRECTED_REQUEST,
            "this server is for this machine: use the host localhost or 127.0.0.1, or start it with --token",
        ),
    }
}

/// Lets pages of an origin read the answer.
fn share(answer: Answer, origin: &str) -> Answer {
    let answer = answer
        .with(ACCESS_CONTROL_ALLOW_ORIGIN, origin)
        .with(ACCESS_CONTROL_ALLOW_METHODS, METHODS)
        .with(
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Range, Depth, Content-Type, If-Match, If-None-Match, If-Range",
        )
        .with(ACCESS_CONTROL_EXPOSE_HEADERS, "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified")
        .with(ACCESS_CONTROL_MAX_AGE, "86400");
    match origin {
        "*" => answer,
        _ => {
            let varies = answer.headers.get(VARY).and_then(|names| names.to_str().ok());
            let varies = varies.map_or_else(|| "Origin".to_owned(), |names| format!("{names}, Origin"));
            answer.with(VARY, varies)
        }
    }
}

/// Returns a short body; `None` if it is long or ends early.
async fn read_all(mut body: Incoming) -> Option<Bytes> {
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await {
        if let Some(data) = frame.ok()?.data_ref() {
            if bytes.len() + data.len() > MAX_BODY {
                return None;
            }
            bytes.extend_from_slice(data);
        }
    }
    Some(bytes.into())
}
