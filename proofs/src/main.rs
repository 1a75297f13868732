//! x
#![allow(missing_docs)]
mod canonical; mod history; mod host; mod mutants; mod protocol; mod search; mod setup; mod world;
use setup::*;
fn main(){
  let a: Vec<usize> = std::env::args().skip(2).map(|s|s.parse().unwrap()).collect();
  let row: u8 = std::env::args().nth(1).unwrap().parse().unwrap();
  let setup = Setup{ row, family: fencepost::Family::Vulkan, topology: Topology::Custom{streams:a[0] as u8,queues:a[1] as u8,threads:1}, bounds: Bounds{events:a[2],open:a[3],in_flight:a[4],live:a[5],slots:usize::MAX}, calls: Calls{destroy:true,..Calls::default()}, reductions: Reductions::ALL, mutant: None, without: &[]};
  let system: world::System<history::Fencepost> = world::System::new(setup);
  let t=std::time::Instant::now();
  let r = search::run(&system, search::Limits::NONE, |_|());
  println!("{setup}: {} {} d{} {:?} {:?} {} {:?} {} MB/s", r.unique_count, r.generated_count, r.depth, r.findings, r.fired, r.bytes/r.unique_count, t.elapsed(), r.generated_count as f64 / r.elapsed.as_secs_f64());
}
