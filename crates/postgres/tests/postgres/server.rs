//! A PostgreSQL server of the tests, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use playhouse_postgres::PostgresStore;

/// The text of a test that cannot run.
const MISSING: &str = "PostgreSQL is not installed, so its store is not tested. On Debian: `apt-get install postgresql`. \
                       Elsewhere: put the folder with `initdb`, `postgres` and `psql` into PATH.";

/// The limit of requests of a store that gives up soon.
pub const HASTE: Duration = Duration::from_secs(3);

/// A server, which ends with the process of the test, in any way that this process may end.
pub struct Server {
    folder: PathBuf,
    process: Child,
    arguments: Vec<String>,
}

/// Returns the server that the tests of this program share. Without PostgreSQL, a test ends here: it fails in CI, and
/// says elsewhere that it did not run.
pub fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(Server::start).as_ref()
}

impl Server {
    /// Starts a server on a Unix socket. Returns `None` if PostgreSQL is not installed.
    pub fn start() -> Option<Server> {
        Server::start_with(|_| vec![])
    }

    /// Starts a server with more arguments. `prepare` gets the folder of the server, writes files into it, and returns the
    /// arguments.
    pub fn start_with(prepare: impl FnOnce(&Path) -> Vec<String>) -> Option<Server> {
        let Some(programs) = programs() else {
            assert!(env::var_os("CI").is_none(), "{MISSING}");
            eprintln!("{MISSING}");
            return None;
        };
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        // The path of a socket has at most 107 bytes.
        let folder = env::temp_dir().join(format!("playhouse-pg-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let owner = Owner::of_servers();
        owner.give(&folder);
        let mut initdb = owner.command(&programs.join("initdb"));
        initdb.args(["--username=test", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "-D"]);
        let created = initdb.arg(folder.join("data")).output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let arguments = prepare(&folder);
        for entry in fs::read_dir(&folder).unwrap() {
            owner.give(&entry.unwrap().path());
        }
        let process = run(&programs, &folder, &owner, &arguments);
        let server = Server { folder, process, arguments };
        server.wait_until_ready();
        Some(server)
    }

    /// Ends the server as a power failure would, and starts it again.
    pub fn kill_and_restart(&mut self) {
        let killed = self.signal("KILL");
        self.end();
        // A server does not start while a process of the former one is attached to its memory.
        let is_alive = || {
            let states = Command::new("ps").args(["-o", "stat=", "-p", &killed.join(",")]).output().unwrap().stdout;
            String::from_utf8(states).unwrap().lines().any(|state| !state.starts_with('Z'))
        };
        while is_alive() {
            thread::yield_now();
        }
        let _ = fs::remove_file(self.folder.join("data/postmaster.pid"));
        self.process = run(&programs().unwrap(), &self.folder, &Owner::of_servers(), &self.arguments);
        self.wait_until_ready();
    }

    /// Sends a signal to the server and to the processes of its connections. Returns their numbers.
    pub fn signal(&self, name: &str) -> Vec<String> {
        let pid = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", &pid]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        let all: Vec<_> = [&*pid].into_iter().chain(children.split_whitespace()).map(str::to_owned).collect();
        // A process may have ended by itself.
        Command::new("kill").arg(format!("-{name}")).args(&all).stderr(Stdio::null()).status().unwrap();
        all
    }

    /// Returns the parameters of connections, whose tables are in this schema.
    pub fn parameters(&self, schema: &str) -> String {
        let host = self.folder.display();
        format!("host={host} port={} user=test dbname=postgres options='-c search_path={schema}'", self.port())
    }

    /// Returns the path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port()))
    }

    /// Executes a command of SQL, and returns the text of its result.
    pub fn sql(&self, command: &str) -> String {
        let mut psql = Command::new(programs().unwrap().join("psql"));
        psql.arg("-h").arg(&self.folder).args(["-p", self.port(), "-U", "test", "-d", "postgres", "-XAtqc", command]);
        let output = psql.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Creates a schema for one test.
    pub fn schema(&self) -> String {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let name = format!("test{}", NUMBERS.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("CREATE SCHEMA {name}"));
        name
    }

    /// Opens an empty store.
    pub fn store(&self) -> PostgresStore {
        PostgresStore::connect(&self.parameters(&self.schema())).unwrap()
    }

    /// Opens an empty store whose requests end soon if the server does not answer.
    pub fn hasty_store(&self) -> PostgresStore {
        let parameters = format!("{} connect_timeout=1", self.parameters(&self.schema()));
        PostgresStore::connect_within(&parameters, HASTE).unwrap()
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = PostgresStore::connect(&self.parameters("ready")) {
            // The schema is missing, so the server was reached.
            if error.to_string().contains("SQLSTATE 3F000") {
                return;
            }
            assert!(Instant::now() < deadline, "{error}: {}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the port, which is in the name of the Unix socket, too.
    fn port(&self) -> &str {
        self.arguments.iter().find_map(|argument| argument.strip_prefix("port=")).unwrap_or("5432")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn end(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs a server below a shell. The shell ends it when its standard input is closed, also if it is paused.
fn run(programs: &Path, folder: &Path, owner: &Owner, arguments: &[String]) -> Child {
    let script = "\"$@\" >> \"$0\" 2>&1 < /dev/null & while read -r _; do :; done; kill -QUIT $! 2> /dev/null; kill -CONT $! 2> /dev/null; wait $!";
    let mut shell = owner.command(Path::new("sh"));
    shell
        .arg("-c")
        .arg(script)
        .arg(folder.join("log"))
        .arg(programs.join("postgres"))
        .arg("-D")
        .arg(folder.join("data"));
    shell.arg("-k").arg(folder).args(["-c", "listen_addresses=", "-c", "max_connections=200"]).args(arguments);
    // The shell reports the end of a killed server.
    shell.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Returns the folder of the newest PostgreSQL that is installed.
fn programs() -> Option<PathBuf> {
    let has_all = |folder: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|program| folder.join(program).exists());
    let in_path = env::split_paths(&env::var_os("PATH")?).find(has_all);
    let of_debian = || {
        let versions =
            fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
        versions.filter(has_all).max()
    };
    in_path.or_else(of_debian)
}

/// The user of the servers. PostgreSQL refuses to run as root.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn of_servers() -> Owner {
        use std::os::unix::fs::MetadataExt;
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = users.lines().find_map(|line| {
            let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        });
        Owner(found.filter(|_| is_root))
    }

    fn give(&self, folder: &Path) {
        if let Some((user, group)) = self.0 {
            std::os::unix::fs::chown(folder, Some(user), Some(group)).unwrap();
        }
    }

    fn command(&self, program: &Path) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        command.current_dir("/");
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}
