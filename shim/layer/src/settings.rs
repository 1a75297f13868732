//! What the user asked for: environment variables `FENCEPOST_NAME`, else lines `fencepost_lifecycle.name = value` of
//! `vk_layer_settings.txt`, which is sought where `VK_LAYER_SETTINGS_PATH` says, or in the current directory, else what the
//! application says by `VK_EXT_layer_settings`.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ash::vk;
use fencepost::Rule;

use crate::commands::{chained, list};

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Reports go to stderr.
    pub stderr: bool,
    /// Reports go to the application's messengers.
    pub debug_utils: bool,
    /// Where the trace of the first device goes.
    pub trace: Option<PathBuf>,
    /// Rules that end the process when they are broken.
    pub break_on: Vec<Rule>,
    /// How long a host wait may last before it is explained.
    pub watchdog: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { stderr: true, debug_utils: true, trace: None, break_on: Vec::new(), watchdog: None }
    }
}

const LAYER: &str = "VK_LAYER_FENCEPOST_lifecycle";
const PREFIX: &str = "fencepost_lifecycle.";
const NAMES: [&str; 4] = ["report", "trace", "break_on", "watchdog"];

impl Settings {
    /// The settings, and what is wrong with them.
    ///
    /// # Safety
    /// The structure is that of a `vkCreateInstance`.
    pub unsafe fn read(info: &vk::InstanceCreateInfo<'_>) -> (Settings, Vec<String>) {
        let environment = NAMES.iter().filter_map(|name| {
            let variable = format!("FENCEPOST_{}", name.to_uppercase());
            let value = std::env::var_os(&variable)?.to_string_lossy().into_owned();
            Some((variable, (*name).to_owned(), value))
        });
        let environment: Vec<_> = environment.collect();
        let path = std::env::var_os("VK_LAYER_SETTINGS_PATH").map(PathBuf::from).unwrap_or_default();
        let path = if path.as_os_str().is_empty() || path.is_dir() { path.join("vk_layer_settings.txt") } else { path };
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // SAFETY: as the caller says.
        let mut all = unsafe { given(info) };
        all.extend(lines(&path, &text));
        all.extend(environment);
        parse(all)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let list = || value.split(',').map(str::trim).filter(|word| !word.is_empty());
        match name {
            "report" => {
                (self.stderr, self.debug_utils) = (false, false);
                for word in list() {
                    match word {
                        "stderr" => self.stderr = true,
                        "debug_utils" => self.debug_utils = true,
                        "none" => {}
                        _ => return Err(format!("{word:?} is not one of stderr, debug_utils, none")),
                    }
                }
            }
            "trace" => self.trace = Some(value).filter(|value| !value.is_empty()).map(PathBuf::from),
            "break_on" => {
                let rules: Vec<Rule> = Rule::ALL.into_iter().chain([Rule::DataRace]).collect();
                self.break_on = list()
                    .flat_map(
                        |word| if word == "all" { rules.iter().map(|rule| rule.name()).collect() } else { vec![word] },
                    )
                    .map(|word| {
                        let known = rules.iter().find(|rule| rule.name() == word).copied();
                        let names = || rules.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ");
                        known.ok_or_else(|| format!("{word:?} is not one of all, {}", names()))
                    })
                    .collect::<Result<_, _>>()?;
            }
            "watchdog" => {
                let seconds = Some(value).filter(|value| !value.is_empty()).map(|value| {
                    let seconds = value.parse().ok().map(Duration::try_from_secs_f64);
                    let seconds = seconds.and_then(Result::ok).filter(|seconds| !seconds.is_zero());
                    seconds.ok_or_else(|| format!("{value:?} is no number of seconds above 0"))
                });
                self.watchdog = seconds.transpose()?;
            }
            _ => return Err(format!("there is no such setting; there are {}", NAMES.join(", "))),
        }
        Ok(())
    }
}

/// Where it stands, its name, its value.
type Setting = (String, String, String);

/// What the application says to this layer.
unsafe fn given(info: &vk::InstanceCreateInfo<'_>) -> Vec<Setting> {
    // SAFETY: the application's chain, with strings and lists as they say they are.
    unsafe {
        let Some(info) = chained::<vk::LayerSettingsCreateInfoEXT<'_>>(info.p_next) else { return Vec::new() };
        let text = |text: *const c_char| {
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        let ours = list(info.p_settings, info.setting_count).iter().filter(|s| text(s.p_layer_name) == LAYER);
        let setting = |setting: &vk::LayerSettingEXT<'_>| {
            let name = text(setting.p_setting_name);
            let values: Vec<String> = match setting.ty {
                vk::LayerSettingTypeEXT::STRING => values(setting).iter().map(|value| text(*value)).collect(),
                vk::LayerSettingTypeEXT::BOOL32 | vk::LayerSettingTypeEXT::UINT32 => said::<u32>(setting),
                vk::LayerSettingTypeEXT::UINT64 => said::<u64>(setting),
                vk::LayerSettingTypeEXT::INT32 => said::<i32>(setting),
                vk::LayerSettingTypeEXT::INT64 => said::<i64>(setting),
                vk::LayerSettingTypeEXT::FLOAT32 => said::<f32>(setting),
                vk::LayerSettingTypeEXT::FLOAT64 => said::<f64>(setting),
                _ => Vec::new(),
            };
            (format!("the application's {name}"), name, values.join(","))
        };
        ours.map(setting).collect()
    }
}

/// # Safety
/// The values have this type.
unsafe fn values<'a, T>(setting: &vk::LayerSettingEXT<'a>) -> &'a [T] {
    // SAFETY: as the caller says.
    unsafe { list(setting.p_values.cast(), setting.value_count) }
}

/// # Safety
/// The values have this type.
unsafe fn said<T: ToString>(setting: &vk::LayerSettingEXT<'_>) -> Vec<String> {
    // SAFETY: as the caller says.
    unsafe { values::<T>(setting) }.iter().map(T::to_string).collect()
}

fn lines(path: &Path, text: &str) -> Vec<Setting> {
    let line = |(at, line): (usize, &str)| {
        let line = line.split('#').next().unwrap_or("").trim();
        let (name, value) = line.strip_prefix(PREFIX)?.split_once('=').unwrap_or((line, ""));
        let place = format!("{}:{}: {PREFIX}{}", path.display(), at + 1, name.trim());
        Some((place, name.trim().to_owned(), value.trim().to_owned()))
    };
    text.lines().enumerate().filter_map(line).collect()
}

fn parse(all: Vec<Setting>) -> (Settings, Vec<String>) {
    let (mut settings, mut faults) = (Settings::default(), Vec::new());
    for (place, name, value) in all {
        let mut changed = settings.clone();
        match changed.set(&name, &value) {
            Ok(()) => settings = changed,
            Err(fault) => faults.push(format!("{place}: {fault}")),
        }
    }
    (settings, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_line_by_line_and_each_fault_is_told_with_its_place() {
        let text = "# comment\n\
                    khronos_validation.report_flags = error\n\
                    fencepost_lifecycle.report = none # quiet\n\
                    fencepost_lifecycle.break_on = data_race, progress\n\
                    fencepost_lifecycle.break_on = data_race, race\n\
                    fencepost_lifecycle.watchdog = 0\n\
                    fencepost_lifecycle.watchdog = 2.5\n\
                    fencepost_lifecycle.log = x\n";
        let (settings, faults) = parse(lines(Path::new("s.txt"), text));
        let expected = Settings {
            stderr: false,
            debug_utils: false,
            trace: None,
            break_on: vec![Rule::DataRace, Rule::Progress],
            watchdog: Some(Duration::from_millis(2500)),
        };
        assert_eq!(settings, expected);
        let heads: Vec<_> =
            faults.iter().map(|fault| fault.split_once(", ").map_or(&**fault, |(head, _)| head)).collect();
        assert_eq!(
            heads,
            [
                "s.txt:5: fencepost_lifecycle.break_on: \"race\" is not one of all",
                "s.txt:6: fencepost_lifecycle.watchdog: \"0\" is no number of seconds above 0",
                "s.txt:8: fencepost_lifecycle.log: there is no such setting; there are report",
            ]
        );
    }

    #[test]
    fn what_comes_later_wins() {
        let setting = |value: &str| ("here".to_owned(), "report".to_owned(), value.to_owned());
        let (settings, faults) = parse(vec![setting("none"), setting("debug_utils")]);
        assert_eq!((settings.stderr, settings.debug_utils, faults.len()), (false, true, 0));
    }
}
