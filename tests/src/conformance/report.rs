//! What a run of the suite says.

use std::fmt;

use fencepost::Rule;

use super::Capability;

/// A rule that was broken, and how that showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which rule.
    pub rule: Rule,
    /// How it showed.
    pub text: String,
}

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every round was right.
    Passed,
    /// It was not played.
    Unsupported(Capability),
    /// A round was wrong; no further ones were played.
    Failed {
        /// The seed of that round.
        seed: u64,
        /// What a judge inside said, then what showed from outside.
        broken: Vec<Broken>,
    },
}

/// A check in one of its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The check's name, with `, two queues` where its streams are spread over two.
    pub name: String,
    /// The rule that the check is about.
    pub rule: Rule,
    /// How it went.
    pub verdict: Verdict,
}

impl Case {
    /// The rules broken in it.
    pub fn rules(&self) -> Vec<Rule> {
        match &self.verdict {
            Verdict::Failed { broken, .. } => broken.iter().map(|b| b.rule).collect(),
            _ => Vec::new(),
        }
    }
}

/// Every case, and what of it was not expected. Its `Display` is a line for each case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order of [`CHECKS`](super::CHECKS).
    pub cases: Vec<Case>,
    /// What is not as it was expected to be; empty if all is well.
    pub surprises: Vec<String>,
    expected: Vec<String>,
}

impl Report {
    pub(super) fn new(cases: Vec<Case>, failing: &[(&str, Rule)]) -> Report {
        let listed = |case: &Case| failing.iter().find(|(name, _)| *name == case.name).map(|(_, rule)| *rule);
        let mut surprises = Vec::new();
        for case in &cases {
            match (&case.verdict, listed(case)) {
                (Verdict::Failed { .. }, None) => surprises.push(format!("{} fails", case.name)),
                (Verdict::Failed { .. }, Some(rule)) if !case.rules().contains(&rule) => {
                    surprises.push(format!("{} fails, but not by {}", case.name, rule.name()));
                }
                (Verdict::Passed, Some(_)) => surprises.push(format!("{} passes and is expected to fail", case.name)),
                (Verdict::Unsupported(_), Some(_)) => {
                    surprises.push(format!("{} is expected to fail and never supported", case.name));
                }
                _ => {}
            }
        }
        let unknown = failing.iter().filter(|(name, _)| !cases.iter().any(|case| case.name == *name));
        surprises.extend(unknown.map(|(name, _)| format!("{name} is expected to fail, and no case has that name")));
        Report { cases, surprises, expected: failing.iter().map(|(name, _)| (*name).into()).collect() }
    }

    /// Whether nothing failed but what was expected to, and all of that did.
    pub fn is_as_expected(&self) -> bool {
        self.surprises.is_empty()
    }

    /// The case of that name.
    pub fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == name)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            let word = match &case.verdict {
                Verdict::Passed => "passed".into(),
                Verdict::Unsupported(capability) => format!("not supported ({capability:?})"),
                Verdict::Failed { seed, .. } if self.expected.contains(&case.name) => {
                    format!("fails as expected, seed {seed}")
                }
                Verdict::Failed { seed, .. } => format!("FAILED, seed {seed}"),
            };
            writeln!(f, "{:<18}  {:<56}  {word}", case.rule.name(), case.name)?;
            if let Verdict::Failed { broken, .. } = &case.verdict {
                for Broken { rule, text } in broken {
                    writeln!(f, "    {}: {text}", rule.name())?;
                }
            }
        }
        self.surprises.iter().try_for_each(|surprise| writeln!(f, "NOT EXPECTED: {surprise}"))
    }
}
