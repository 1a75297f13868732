//! x
#![allow(missing_docs)]
mod canonical; mod history; mod host; mod mutants; mod protocol; mod search; mod setup; mod world;
use setup::*;
fn main(){
  let a: Vec<usize> = std::env::args().skip(3).map(|s|s.parse().unwrap()).collect();
  let row: u8 = std::env::args().nth(1).unwrap().parse().unwrap();
  let f = std::env::args().nth(2).unwrap();
  let topology = match a[0] { 1 => Topology::OneStream, 2=>Topology::TwoStreamsOneQueue, 3=>Topology::TwoQueues, 4=>Topology::ComputeTransfer, 5=>Topology::TwoThreads, n => Topology::Custom{streams:(n/100) as u8,queues:(n/10%10) as u8,threads:(n%10) as u8} };
  let h=|c| f.contains(c);
  let setup = Setup{ row, family: if h('C') {fencepost::Family::Cuda} else {fencepost::Family::Vulkan}, topology, bounds: Bounds{events:a[1],open:a[2],in_flight:a[3],live:a[4],slots:*a.get(5).unwrap_or(&usize::MAX)}, calls: Calls{destroy:h('d'),synchronize:h('s'),synchronize_stream:h('S'),renew_stream:h('n'),refuse:h('r'),lose:h('l'),time_out:h('t')}, reductions: Reductions{drop_slots:!h('k'),..Reductions::ALL}, mutant: None, without: &[]};
  let r = history::with_row!(row, system => search::run(&system, search::Limits{states:20_000_000,time:std::time::Duration::from_secs(100)}, |p|if h('v') {eprintln!("{p:?}")}), setup);
  println!("{setup}: {} {} d{} {} {:?} {}B {:?} {:.0}/s", r.unique_count, r.generated_count, r.depth, r.exhaustive, r.fired, r.bytes/r.unique_count, r.elapsed, r.generated_count as f64 / r.elapsed.as_secs_f64());
  for f in &r.findings { println!("  {} {} {}", f.rule.name(), f.path.len(), f.path.iter().map(|a|a.to_string()).collect::<Vec<_>>().join("; ")); }
}
