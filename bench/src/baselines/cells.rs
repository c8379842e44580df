//! Individually allocated actors: the least cost of creating and ending one.

/// Actors that come and go, each in an allocation of its own, found by number.
pub(crate) struct Cells<T> {
    cells: Vec<Option<Box<T>>>,
    free: Vec<u32>,
}

impl<T> Cells<T> {
    /// Creates an empty set.
    pub(crate) fn new() -> Self {
        Self { cells: Vec::new(), free: Vec::new() }
    }

    /// Allocates an actor and returns its number.
    #[inline]
    pub(crate) fn create(&mut self, actor: T) -> u32 {
        let cell = Some(Box::new(actor));
        match self.free.pop() {
            Some(number) => {
                self.cells[number as usize] = cell;
                number
            }
            None => {
                self.cells.push(cell);
                (self.cells.len() - 1) as u32
            }
        }
    }

    /// Ends an actor and frees its allocation.
    ///
    /// # Panics
    ///
    /// If it has ended before.
    #[inline]
    pub(crate) fn end(&mut self, number: u32) {
        let cell = self.cells[number as usize].take();
        assert!(cell.is_some(), "actor {number} has ended before");
        self.free.push(number);
    }

    /// Returns an actor.
    ///
    /// # Panics
    ///
    /// If it has ended.
    #[inline]
    pub(crate) fn get(&mut self, number: u32) -> &mut T {
        match &mut self.cells[number as usize] {
            Some(cell) => cell,
            None => panic!("actor {number} has ended"),
        }
    }

    /// Returns the number of living actors.
    pub(crate) fn alive(&self) -> usize {
        self.cells.len() - self.free.len()
    }
}
