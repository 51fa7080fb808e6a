//! A server's memory without a kernel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use headstart_kernel::{KernelError, Lesson, LiveMemory, Prefix};
use headstart_memory::Local;

#[derive(Clone, Default)]
pub(crate) struct Table(pub(crate) Arc<Mutex<HashMap<Prefix, Lesson>>>);

impl Local for Table {
    fn now_ns(&self) -> u64 {
        LiveMemory::now_ns()
    }

    fn look(&self, each: &mut dyn FnMut(Lesson)) -> Result<(), KernelError> {
        self.0.lock().unwrap().values().copied().for_each(each);
        Ok(())
    }

    fn get(&self, prefix: Prefix) -> Result<Option<Lesson>, KernelError> {
        Ok(self.0.lock().unwrap().get(&prefix).copied())
    }

    fn put(&self, lesson: &Lesson) -> Result<(), KernelError> {
        self.0.lock().unwrap().insert(lesson.prefix, *lesson);
        Ok(())
    }
}
