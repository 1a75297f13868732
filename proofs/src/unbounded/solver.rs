//! The text as SMT-LIB, and two solvers that decide it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;

use easy_smt::{Context, ContextBuilder, Response, SExpr};

use super::algebra::{Algebra, Claim, View, When};
use super::invariant::clauses;
use super::relation::{Step, Update};
use super::vocabulary::{Shape, Sort, Symbol};

/// A solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Z3,
    Cvc5,
}

impl Program {
    pub const ALL: [Program; 2] = [Program::Z3, Program::Cvc5];

    pub const fn name(self) -> &'static str {
        match self {
            Program::Z3 => "z3",
            Program::Cvc5 => "cvc5",
        }
    }

    /// Milliseconds for one condition. Most take a hundredth of it; one that does not is to be split, not waited for.
    const LIMIT: u32 = 10_000;

    fn arguments(self) -> Vec<String> {
        match self {
            Program::Z3 => vec!["-smt2".into(), "-in".into(), format!("-t:{}", Self::LIMIT)],
            Program::Cvc5 => vec![
                "--lang=smt2".into(),
                "--incremental".into(),
                "--finite-model-find".into(),
                format!("--tlimit-per={}", Self::LIMIT),
            ],
        }
    }
}

/// What a solver says of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Proved,
    /// With the state and the step that refute it, in our words.
    Refuted(String),
    Unknown,
}

/// The algebra of SMT-LIB terms.
#[derive(Clone, Copy)]
pub struct Smt<'a> {
    context: &'a Context,
    /// Symbols that read differently after the step.
    changed: &'a BTreeSet<Symbol>,
    used: &'a RefCell<BTreeSet<Symbol>>,
    variables: &'a Cell<u32>,
    /// Where a claim is to be refuted, each `all` asks for one witness. Quantifiers are never under a negation, so that
    /// is what its negation says.
    witnesses: Option<&'a RefCell<Vec<(String, Sort)>>>,
}

impl Smt<'_> {
    fn name(self, when: When, symbol: Symbol) -> SExpr {
        let after = when == When::Post && self.changed.contains(&symbol);
        if after {
            self.used.borrow_mut().insert(symbol);
        }
        self.context.atom(format!("{}{}", symbol.name(), if after { "_after" } else { "" }))
    }

    fn variable(self, sort: Sort) -> (String, SExpr) {
        let n = self.variables.get();
        self.variables.set(n + 1);
        let name = format!("{}{n}", sort.name().to_lowercase());
        let atom = self.context.atom(name.as_str());
        (name, atom)
    }

    fn quantify(self, name: String, sort: Sort, body: SExpr) -> SExpr {
        match self.witnesses {
            Some(witnesses) => {
                witnesses.borrow_mut().push((name, sort));
                body
            }
            None => self.context.forall([(name, self.context.atom(sort.name()))], body),
        }
    }
}

impl Algebra for Smt<'_> {
    type Bool = SExpr;
    type Term = SExpr;

    fn truth(self, value: bool) -> SExpr {
        if value { self.context.true_() } else { self.context.false_() }
    }

    fn not(self, a: SExpr) -> SExpr {
        self.context.not(a)
    }

    fn and(self, a: SExpr, b: SExpr) -> SExpr {
        self.context.and(a, b)
    }

    fn or(self, a: SExpr, b: SExpr) -> SExpr {
        self.context.or(a, b)
    }

    fn implies(self, a: SExpr, b: impl FnOnce() -> SExpr) -> SExpr {
        self.context.imp(a, b())
    }

    fn same(self, a: SExpr, b: SExpr) -> SExpr {
        self.context.eq(a, b)
    }

    fn choose(self, a: SExpr, b: SExpr, c: SExpr) -> SExpr {
        self.context.ite(a, b, c)
    }

    fn all(self, sort: Sort, body: impl Fn(SExpr) -> SExpr) -> SExpr {
        let (name, atom) = self.variable(sort);
        self.quantify(name, sort, body(atom))
    }

    fn atom(self, when: When, symbol: Symbol, args: [SExpr; 2]) -> SExpr {
        let name = self.name(when, symbol);
        let args = if symbol.signature().1.len() == 1 { &args[..1] } else { &args[..] };
        self.context.list([&[name], args].concat())
    }

    fn each(self, when: When, map: Symbol, key: SExpr, body: impl Fn(SExpr) -> SExpr) -> SExpr {
        let sort = map.signature().1[1];
        let (name, atom) = self.variable(sort);
        let has = self.atom(when, map, [key, atom]);
        self.quantify(name, sort, self.context.imp(has, body(atom)))
    }

    fn apply(self, when: When, function: Symbol, arg: SExpr) -> SExpr {
        self.context.list(vec![self.name(when, function), arg])
    }

    fn constant(self, constant: Symbol) -> SExpr {
        self.context.atom(constant.name())
    }
}

/// A solver that holds the vocabulary.
pub struct Session {
    context: Context,
    variables: Cell<u32>,
    changed: BTreeSet<Symbol>,
    used: RefCell<BTreeSet<Symbol>>,
    /// Constants of the step in question.
    named: Vec<(String, Sort)>,
}

/// A claim, ready to be refuted: with the witnesses that would do it.
pub struct Goal {
    claim: SExpr,
    witnesses: Vec<(String, Sort)>,
}

impl Session {
    pub fn start(program: Program) -> io::Result<Session> {
        let context = ContextBuilder::new().solver(program.name()).solver_args(program.arguments()).build()?;
        let mut session = Session {
            context,
            variables: Cell::new(0),
            changed: BTreeSet::new(),
            used: RefCell::new(BTreeSet::new()),
            named: Vec::new(),
        };
        session.declare()?;
        Ok(session)
    }

    fn declare(&mut self) -> io::Result<()> {
        self.context.set_option(":produce-models", self.context.true_())?;
        self.context.set_logic("UF")?;
        for sort in Sort::ALL {
            self.context.declare_sort(sort.name(), 0)?;
        }
        for symbol in Symbol::ALL {
            let (shape, sorts) = symbol.signature();
            let sorts: Vec<SExpr> = sorts.iter().map(|s| self.context.atom(s.name())).collect();
            match shape {
                Shape::Constant => self.context.declare_const(symbol.name(), sorts[0])?,
                Shape::Function => self.context.declare_fun(symbol.name(), sorts[..1].to_vec(), sorts[1])?,
                _ => self.context.declare_fun(symbol.name(), sorts, self.context.bool_sort())?,
            };
        }
        Ok(())
    }

    /// The algebra in which texts are read for this solver.
    fn algebra(&self) -> Smt<'_> {
        let Session { context, variables, changed, used, named: _ } = self;
        Smt { context, changed, used, variables, witnesses: None }
    }

    /// Takes a claim for granted.
    pub fn assume(&mut self, build: impl FnOnce(Smt) -> SExpr) -> io::Result<()> {
        let claim = build(self.algebra());
        self.context.assert(claim)
    }

    /// Takes claims for granted.
    pub fn assume_all(&mut self, build: impl for<'a> FnOnce(Smt<'a>) -> Vec<Claim<Smt<'a>>>) -> io::Result<()> {
        let claims: Vec<SExpr> = build(self.algebra()).iter().map(|c| c.value).collect();
        claims.into_iter().try_for_each(|claim| self.context.assert(claim))
    }

    /// The symbol holds of nothing.
    pub fn assume_nothing_is(&mut self, symbol: Symbol) -> io::Result<()> {
        let (_, sorts) = symbol.signature();
        self.assume(|a| {
            a.all(sorts[0], |x| match sorts.get(1) {
                Some(sort) => a.all(*sort, |y| a.not(a.atom(When::Pre, symbol, [x, y]))),
                None => a.not(a.atom(When::Pre, symbol, [x, x])),
            })
        })
    }

    /// Reads a text without asking anything.
    pub fn with<T>(&self, read: impl for<'a> FnOnce(Smt<'a>) -> T) -> T {
        read(self.algebra())
    }

    /// The invariant, but for one clause.
    pub fn assume_invariant(&mut self, but: Option<&str>) -> io::Result<()> {
        for clause in 0..super::invariant::NAMES.len() {
            if but != Some(super::invariant::NAMES[clause]) {
                self.assume(|a| (clauses::<Smt>()[clause].claim)(View { algebra: a, when: When::Pre }).value)?;
            }
        }
        Ok(())
    }

    /// Constants for the parameters of a step.
    pub fn parameters(&mut self, parameters: &[(&str, Sort)]) -> io::Result<Vec<SExpr>> {
        let mut terms = Vec::new();
        for (name, sort) in parameters {
            let name = format!("the_{name}");
            terms.push(self.declare_one(&name, *sort)?);
            self.named.push((name, *sort));
        }
        Ok(terms)
    }

    fn declare_one(&mut self, name: &str, sort: Sort) -> io::Result<SExpr> {
        let sort = self.context.atom(sort.name());
        self.context.declare_const(name, sort)
    }

    /// A claim to be decided.
    pub fn goal(&self, build: impl for<'a> FnOnce(Smt<'a>) -> Claim<Smt<'a>>) -> Goal {
        let witnesses = RefCell::new(Vec::new());
        let claim = build(Smt { witnesses: Some(&witnesses), ..self.algebra() }).value;
        Goal { claim, witnesses: witnesses.into_inner() }
    }

    /// What a step says, as terms: its guard, and its updates with their variables.
    pub fn read(&self, build: impl for<'a> FnOnce(Smt<'a>) -> Step<'a, Smt<'a>>) -> Read {
        let algebra = self.algebra();
        let step = build(algebra);
        let updates = step.updates.iter().map(|(symbol, update)| {
            let (_, sorts) = symbol.signature();
            let variables: Vec<(String, SExpr)> = sorts.iter().map(|s| algebra.variable(*s)).collect();
            let x = variables[0].1;
            let body = match update {
                Update::Holds(f) => f([x, variables.get(1).map_or(x, |v| v.1)]),
                Update::Is(f) => f(x),
            };
            (*symbol, variables.into_iter().map(|v| v.0).collect(), body)
        });
        Read { updates: updates.collect(), guard: step.guard.iter().map(|g| g.value).collect() }
    }

    /// Takes the guard for granted, and defines the symbols that the step changes.
    pub fn assume_step(&mut self, read: &Read) -> io::Result<()> {
        for guard in &read.guard {
            self.context.assert(*guard)?;
        }
        for (symbol, variables, body) in &read.updates {
            let (shape, sorts) = symbol.signature();
            let (sorts, result) = match shape {
                Shape::Function => (&sorts[..1], self.context.atom(sorts[1].name())),
                _ => (sorts, self.context.bool_sort()),
            };
            let arguments = variables.iter().zip(sorts).map(|(v, s)| (v.clone(), self.context.atom(s.name())));
            let arguments = arguments.collect();
            self.context.define_fun(format!("{}_after", symbol.name()), arguments, result, *body)?;
        }
        self.changed = read.updates.iter().map(|u| u.0).collect();
        Ok(())
    }

    /// A clause after the step; `None` if the step changes nothing that it reads.
    pub fn clause_after(&self, clause: usize) -> Option<Goal> {
        self.used.borrow_mut().clear();
        let goal = self.goal(|algebra| (clauses::<Smt>()[clause].claim)(View { algebra, when: When::Post }));
        (!self.used.borrow().is_empty()).then_some(goal)
    }

    /// Whether the claim follows from what is taken for granted.
    pub fn decide(&mut self, goal: Goal) -> io::Result<Verdict> {
        self.context.push()?;
        for (name, sort) in &goal.witnesses {
            self.declare_one(name, *sort)?;
        }
        let negated = self.context.not(goal.claim);
        self.context.assert(negated)?;
        let verdict = match self.context.check()? {
            Response::Unsat => Verdict::Proved,
            Response::Unknown => Verdict::Unknown,
            Response::Sat => Verdict::Refuted(self.who_is_who(&goal.witnesses)?),
        };
        self.context.pop()?;
        Ok(verdict)
    }

    /// The model that the solver found, as far as the step and the witnesses go: what each of them is, before the step.
    fn who_is_who(&mut self, witnesses: &[(String, Sort)]) -> io::Result<String> {
        let constants = Symbol::ALL.iter().filter_map(|c| match c.signature() {
            (Shape::Constant, sorts) => Some((c.name().to_string(), sorts[0])),
            _ => None,
        });
        let plain = constants.chain(self.named.iter().cloned());
        let mut all: Vec<(String, SExpr, Sort)> = Vec::new();
        for (name, sort) in plain {
            all.push((name.clone(), self.context.atom(name), sort));
        }
        for (at, (name, sort)) in witnesses.iter().enumerate() {
            all.push((format!("{}_{}", sort.name().to_lowercase(), at + 1), self.context.atom(name.as_str()), *sort));
        }
        for (name, term, _) in all.clone().into_iter().filter(|(_, _, sort)| *sort == Sort::Op) {
            let home = self.context.list(vec![self.context.atom(Symbol::home.name()), term]);
            all.push((format!("batch_of_{name}"), home, Sort::Batch));
        }
        // Names of one element are told once.
        let mut who: Vec<(String, SExpr, Sort)> = Vec::new();
        let mut story = String::new();
        for (name, term, sort) in all {
            let mut known = None;
            for (other, same, _) in who.iter().filter(|(_, _, s)| *s == sort).cloned().collect::<Vec<_>>() {
                let equal = self.context.eq(term, same);
                if self.is_so(equal)? {
                    known = Some(other);
                    break;
                }
            }
            match known {
                Some(_) if name.starts_with("batch_of") => {}
                Some(other) => story += &format!("  {name} is {other}\n"),
                None => who.push((name, term, sort)),
            }
        }
        for (name, x, sort) in who.clone() {
            let mut said: Vec<&str> = Vec::new();
            let mut told: Vec<String> = Vec::new();
            for symbol in Symbol::ALL {
                let (shape, sorts) = symbol.signature();
                if sorts[0] != sort || shape == Shape::Constant {
                    continue;
                }
                let head = self.context.atom(symbol.name());
                if shape == Shape::Unary {
                    let term = self.context.list(vec![head, x]);
                    if self.is_so(term)? {
                        said.push(symbol.name());
                    }
                    continue;
                }
                // A function has a value even where it means nothing.
                let means = match symbol {
                    Symbol::home => "made",
                    Symbol::newest => "promised",
                    Symbol::point => "pointed",
                    Symbol::wall => "walled",
                    Symbol::block => "blocked",
                    _ => "",
                };
                if !means.is_empty() && !said.contains(&means) {
                    continue;
                }
                for (other, y, _) in who.iter().filter(|(_, _, s)| *s == sorts[1]).cloned().collect::<Vec<_>>() {
                    let term = match shape {
                        Shape::Function => self.context.eq(self.context.list(vec![head, x]), y),
                        _ => self.context.list(vec![head, x, y]),
                    };
                    if self.is_so(term)? {
                        told.push(format!("{} {other}", symbol.name()));
                    }
                }
            }
            told.splice(0..0, said.iter().map(|s| (*s).to_string()));
            if !told.is_empty() {
                story += &format!("  {name}: {}\n", told.join(", "));
            }
        }
        Ok(story)
    }

    fn is_so(&mut self, term: SExpr) -> io::Result<bool> {
        let values = self.context.get_value(vec![term])?;
        Ok(values.first().is_some_and(|(_, value)| self.context.get_atom(*value) == Some("true")))
    }

    pub fn push(&mut self) -> io::Result<()> {
        self.context.push()
    }

    pub fn pop(&mut self) -> io::Result<()> {
        self.changed.clear();
        self.named.clear();
        self.context.pop()
    }
}

/// A step as terms.
pub struct Read {
    pub guard: Vec<SExpr>,
    pub updates: Vec<(Symbol, Vec<String>, SExpr)>,
}
