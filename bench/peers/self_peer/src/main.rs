//! Playhouse with the benchmarks that all its peers play, those of one process, and nothing else.

fn main() -> std::process::ExitCode {
    playhouse_bench::peers::self_peer::main()
}
