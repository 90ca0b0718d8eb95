#include "agent/provision/find_python.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "agent/host/files.hpp"
#include "agent/host/login_path.hpp"
#include "agent/host/run.hpp"
#include "base/strings.hpp"
#include "rules/python_version.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr const char* version_code =
    "import sys\n"
    "print('Python %d.%d.%d' % sys.version_info[:3])\n"
    "want = [n for n in sys.argv[1].split('.') if n]\n"
    "sys.exit([str(n) for n in sys.version_info[:len(want)]] != want)\n";

constexpr std::string_view version_mark = "Python ";
constexpr std::size_t longest_refusal = 300;

struct Trial {
  bool fits = false;
  std::string version;
  std::string output;
};

Trial try_python(const Host& host, const Path& program, const std::string& version) {
  const RunResult result = run(host, {.argv = {program, "-c", version_code, version},
                                      .limit = std::chrono::seconds(10),
                                      .with_stderr = true,
                                      .max_output = 4096});
  Trial trial{.fits = result.succeeded(), .version = {}, .output = std::string(trim(result.out))};
  for (const std::string& line : split(result.out, '\n')) {
    if (line.starts_with(version_mark)) {
      const std::string number = line.substr(version_mark.size());
      trial.version = number.substr(0, number.find_first_not_of("0123456789."));
    }
  }
  trial.fits = trial.fits && rules::is_usable_python(trial.version);
  if (result.timed_out) {
    trial.output = "it does not answer";
  }
  return trial;
}

std::string describe(const Path& program, const Trial& trial) {
  const std::string why = !trial.version.empty() ? "it is Python " + trial.version
                          : trial.output.empty() ? "it fails and prints nothing"
                                                 : trial.output.substr(0, trial.output.find('\n'));
  return wire::to_line(program.string() + ": " + why, longest_refusal);
}

std::string read_first_process_path(const Host& host) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20U;
  const auto environment = read_file(host.system("/proc/1/environ"), most_bytes);
  for (const std::string& variable : split(environment.value_or(""), '\0')) {
    if (variable.starts_with("PATH=")) {
      return variable.substr(5);
    }
  }
  return "";
}

std::string list_usual_folders(const Host& host) {
  std::string folders = host.system("/opt/conda/bin").string();
  for (const char* name : {"miniconda3", "miniforge3", "mambaforge", "anaconda3", "miniconda", "anaconda"}) {
    folders += ":" + (host.home / name / "bin").string();
    folders += ":" + host.system(std::string("/opt/") + name + "/bin").string();
  }
  // The shims of pyenv fail without a chosen version.
  constexpr std::size_t most_versions = 20;
  const Path pyenv = host.home / ".pyenv/versions";
  const std::vector<std::string> versions = list_names(pyenv);
  for (std::size_t i = 0; i < std::min(versions.size(), most_versions); ++i) {
    folders += ":" + (pyenv / versions[i] / "bin").string();
  }
  return folders + ":" + (host.home / ".local/bin").string() + ":" + host.system("/usr/local/bin").string();
}

}  // namespace

bool is_python(const Host& host, const Path& program, const std::string& version) {
  return try_python(host, program, version).fits;
}

FoundPython find_python(const Host& host, const std::string& version) {
  std::vector<std::string> names{"python3", "python"};
  if (!version.empty()) {
    names.insert(names.begin(), "python" + version);
  }
  FoundPython found;
  for (const std::string& name : names) {
    for (const std::string& folder : split(host.variable("PATH"), ':')) {
      const Path program = Path(folder.empty() ? "." : folder) / name;
      if (!is_program(program)) {
        continue;
      }
      const Trial trial = try_python(host, program, version);
      if (trial.fits) {
        found.program = program;
        found.version = trial.version;
        return found;
      }
      if (found.refusal.empty()) {
        found.refusal = describe(program, trial);
      }
    }
  }
  return found;
}

Path find_hidden_python(const Host& host, const std::string& version) {
  Host other = host;
  for (const auto& read :
       {read_login_path, read_interactive_path, read_first_process_path, list_usual_folders}) {
    other.environment["PATH"] = read(host);
    if (const FoundPython found = find_python(other, version); found.program.is_absolute()) {
      return found.program;
    }
  }
  return {};
}

}  // namespace remote::agent
