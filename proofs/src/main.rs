use fencepost_proofs::*;
use setup::*;
fn main(){
  let which = std::env::args().nth(1).unwrap();
  let v = std::env::args().nth(2).is_some();
  if which=="mutants" {
    for c in mutants::CASES { let s=c.setup(); let system=world::System::<history::Fencepost>::new(s);
      let mut l=search::Limits{first_finding:true,states:3_000_000,..search::Limits::NONE};
      l.time=std::time::Duration::from_secs(20);
      let r=search::run(&system,l,|_|());
      println!("{} want {} {} {:?}: {}", c.name, c.rule.name(), r.unique_count, r.elapsed, r.findings.iter().map(|f|format!("{} {} [{}]",f.rule.name(),f.path.len(),explain::script(&f.path))).collect::<Vec<_>>().join(" | ")); }
    return;
  }
  let mut total=0.0;
  for line in table::LINES { for t in Topology::TABLE { for (part,s) in table::setups(line,t) {
    if which!="all" && which!=line.row.to_string() {continue}
    let mut l=search::Limits::NONE; l.time=std::time::Duration::from_secs(60);
    let r = fencepost_proofs::with_row!(s.row, system => search::run(&system, l, |_|()), s);
    total+=r.elapsed.as_secs_f64();
    let missing: Vec<_> = table::kinds(&s).into_iter().filter(|k|!r.fired.contains(k)).collect();
    println!("{part:?} {s}: {} {} d{} ex={} {:.2}s {:.0}/s missing {missing:?}: {}", r.unique_count, r.generated_count, r.depth, r.exhaustive, r.elapsed.as_secs_f64(), r.generated_count as f64/r.elapsed.as_secs_f64(), r.findings.iter().map(|f|format!("{} {}{}",f.rule.name(),f.path.len(), if v {format!("[{}]",explain::script(&f.path))} else {String::new()})).collect::<Vec<_>>().join(" | "));
  }}}
  println!("total {total}");
}
