//! The thread on which the connections of a store run.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread that runs futures. It ends when this value is dropped, and drops the futures that have not ended.
pub(crate) struct Engine {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    pub(crate) fn start() -> io::Result<Engine> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("playhouse-postgres".to_owned()).spawn(move || {
            let _the_engine_is_dropped = runtime.block_on(ended);
            // The search for the address of a host may take much longer, and cannot be ended.
            runtime.shutdown_background();
        })?;
        Ok(Engine { handle, end: Some(end), thread: Some(thread) })
    }

    /// Runs a future, and blocks the caller until it has ended. Returns `None` if the future has panicked.
    pub(crate) fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (tell, told) = mpsc::sync_channel(1);
        self.handle.spawn(async move { _ = tell.send(future.await) });
        told.recv().ok()
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The thread sees that the channel is closed.
        self.end = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _it_has_panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_ends_while_a_host_is_searched() {
        let engine = Engine::start().unwrap();
        let (found, searched) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        // The names of hosts are looked up on such a thread.
        engine.handle().spawn_blocking(move || {
            begin.send(()).unwrap();
            searched.recv()
        });
        begun.recv().unwrap();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            drop(engine);
            tell.send(()).unwrap();
        });
        told.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
        drop(found);
    }
}
