//! etcd members of the tests, in folders of their own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use playhouse_etcd::{EtcdOptions, EtcdStore};

/// The text of a test that cannot run.
const MISSING: &str = "etcd is not installed, so its store is not tested. On Debian: `apt-get install etcd-server`. \
                       Elsewhere: put the program `etcd` into PATH.";

/// The limit of requests of a store that gives up soon.
pub const HASTE: Duration = Duration::from_secs(3);

/// A cluster, which ends with the process of the test, in any way that this process may end.
pub struct Cluster {
    folder: PathBuf,
    /// The ports of clients and of peers.
    ports: Vec<[u16; 2]>,
    members: Vec<Option<Child>>,
    arguments: Vec<String>,
}

/// Returns the cluster of one member that the tests of this program share. Without etcd, a test ends here: it fails in
/// CI, and says elsewhere that it did not run.
pub fn shared() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(1)).as_ref()
}

impl Cluster {
    /// Starts some members. Returns `None` if etcd is not installed.
    pub fn start(count: usize) -> Option<Cluster> {
        Cluster::start_with(count, |_| vec![])
    }

    /// Starts members with more arguments. `prepare` gets the folder of the cluster, and returns the arguments.
    pub fn start_with(count: usize, prepare: impl FnOnce(&Path) -> Vec<String>) -> Option<Cluster> {
        let is_installed = env::split_paths(&env::var_os("PATH")?).any(|folder| folder.join("etcd").exists());
        if !is_installed {
            assert!(env::var_os("CI").is_none(), "{MISSING}");
            eprintln!("{MISSING}");
            return None;
        }
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("etcd-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let arguments = prepare(&folder);
        let mut cluster = Cluster { folder, ports: free_ports(count), members: vec![], arguments };
        cluster.members = (0..count).map(|member| Some(cluster.run(member))).collect();
        cluster.wait_until_ready();
        Some(cluster)
    }

    /// Kills a member.
    pub fn kill(&mut self, member: usize) {
        self.signal(member, "KILL");
        end(self.members[member].take());
    }

    /// Starts a member that was killed.
    pub fn restart(&mut self, member: usize) {
        self.members[member] = Some(self.run(member));
        self.wait_until_ready();
    }

    /// Sends a signal to a member.
    pub fn signal(&self, member: usize, name: &str) {
        let pid = fs::read_to_string(self.folder.join(format!("{member}.pid"))).unwrap();
        assert!(Command::new("kill").args([&format!("-{name}"), pid.trim()]).status().unwrap().success());
    }

    /// Returns the options of connections to all members, for a store with this namespace.
    pub fn options(&self, namespace: &str) -> EtcdOptions {
        EtcdOptions::new((0..self.ports.len()).map(|member| self.endpoint(member))).namespace(namespace)
    }

    pub fn endpoint(&self, member: usize) -> String {
        format!("{}://localhost:{}", self.scheme(), self.ports[member][0])
    }

    /// Opens an empty store.
    pub fn store(&self) -> EtcdStore {
        self.opened(&self.options(&namespace()))
    }

    /// Opens an empty store whose requests end soon if a member does not answer.
    pub fn hasty_store(&self) -> EtcdStore {
        self.opened(&self.options(&namespace()).request_limit(HASTE))
    }

    fn opened(&self, options: &EtcdOptions) -> EtcdStore {
        // A new cluster may still elect its leader.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match EtcdStore::connect(options) {
                Ok(store) => return store,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }

    /// Creates the user `root` with the password `secret`, and refuses requests without a user from now on.
    pub fn require_users(&self) {
        self.post("/v3/auth/user/add", r#"{"name":"root","password":"secret"}"#, "");
        self.post("/v3/auth/role/add", r#"{"name":"root"}"#, "");
        self.post("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#, "");
        self.post("/v3/auth/enable", "{}", "");
    }

    /// Returns a token of the user `root`.
    pub fn token(&self) -> String {
        let answer = self.post("/v3/auth/authenticate", r#"{"name":"root","password":"secret"}"#, "");
        answer.split('"').rev().nth(1).unwrap().to_owned()
    }

    /// Sends a request with a token to the first member, and returns the answer.
    pub fn post(&self, path: &str, body: &str, token: &str) -> String {
        let mut curl = Command::new("curl");
        curl.args(["-sf", "-d", body, "-H", &format!("Authorization: {token}")]);
        let output = curl.arg(format!("{}{path}", self.endpoint(0))).output().unwrap();
        assert!(output.status.success(), "{path}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn scheme(&self) -> &str {
        if self.arguments.iter().any(|argument| argument.starts_with("--cert-file")) { "https" } else { "http" }
    }

    /// Runs a member below a shell. The shell ends it when its standard input is closed.
    fn run(&self, member: usize) -> Child {
        let name = |member: usize| format!("member{member}");
        let peer = |member: usize| format!("http://127.0.0.1:{}", self.ports[member][1]);
        let all: Vec<_> = (0..self.ports.len()).map(|member| format!("{}={}", name(member), peer(member))).collect();
        let client = format!("{}://127.0.0.1:{}", self.scheme(), self.ports[member][0]);
        let file = |end: &str| self.folder.join(format!("{member}.{end}"));
        let script = "log=$1; shift; etcd \"$@\" >> \"$log\" 2>&1 < /dev/null & echo $! > \"$0\"; \
                      while read -r _; do :; done; kill -KILL $! 2> /dev/null; wait $!";
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).args([file("pid"), file("log")]);
        shell.args(["--name", &name(member), "--data-dir"]).arg(file("data")).args(["--unsafe-no-fsync"]);
        shell.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        shell.args(["--listen-peer-urls", &peer(member), "--initial-advertise-peer-urls", &peer(member)]);
        shell.args(["--initial-cluster", &all.join(",")]).args(&self.arguments);
        shell.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        for member in (0..self.ports.len()).filter(|&member| self.members.get(member).is_none_or(Option::is_some)) {
            // Encrypted or not, a member that accepts connections has joined its cluster.
            while let Err(error) = std::net::TcpStream::connect(("127.0.0.1", self.ports[member][0])) {
                assert!(Instant::now() < deadline, "{error}: {}", self.log(member));
                thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn log(&self, member: usize) -> String {
        fs::read_to_string(self.folder.join(format!("{member}.log"))).unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.members.drain(..).for_each(end);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns a namespace that no other test has.
pub fn namespace() -> String {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    format!("test{}/", NUMBERS.fetch_add(1, Ordering::Relaxed))
}

fn end(member: Option<Child>) {
    if let Some(mut member) = member {
        drop(member.stdin.take());
        let _ = member.wait();
    }
}

/// Returns ports that are free now. All are bound at one time, so that they differ.
fn free_ports(count: usize) -> Vec<[u16; 2]> {
    let bound: Vec<_> = (0..count).map(|_| [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap())).collect();
    bound.iter().map(|both| both.each_ref().map(|port| port.local_addr().unwrap().port())).collect()
}
