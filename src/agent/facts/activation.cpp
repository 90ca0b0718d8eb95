#include "agent/facts/activation.hpp"

#include <chrono>
#include <mutex>
#include <tuple>
#include <vector>

#include "agent/host/run.hpp"
#include "agent/provision/find_python.hpp"
#include "base/strings.hpp"
#include "rules/python_version.hpp"
#include "rules/usable.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// The scripts below answer with records "\036KEY\037VALUE", which no program prints by accident.
constexpr char record_mark = '\036';
constexpr char value_mark = '\037';

// The activation runs without positional parameters, because a file that it sources would see them. Its
// changes to the shell's options are undone.
constexpr std::string_view enter_script =
    "remote_activation=$1 remote_word=$2 remote_other=$3\n"
    "shift 3\n"
    "eval \"$remote_activation\" >/dev/null 2>&1\n"
    "set +e +u +x +v +f +C\n";

constexpr std::string_view variables_script =
    "printf '\\036temporary\\037%s\\036isolated\\037%s\\036end\\037' \"${TMPDIR-}\" "
    "\"${PYTHONNOUSERSITE-}\"\n"
    "[ -z \"${__failed-}\" ] || printf '\\036failed\\037%s\\036end\\037' \"$__failed\"\n"
    "printf '\\036path\\037%s\\036home\\037%s\\036end\\037' \"${PYTHONPATH-}\" \"${PYTHONHOME-}\"\n";

// The script finds the first Python that rules::is_usable_python() accepts.
std::string make_python_script() {
  static_assert(rules::oldest_python_minor < 10);
  return "for remote_python in python3 python; do\n"
         "  remote_version=$(\"$remote_python\" -V 2>&1 </dev/null) || continue\n"
         "  case $remote_version in\n"
         "    'Python 3.'[" +
         std::to_string(rules::oldest_python_minor) +
         "-9]* | 'Python 3.'[1-9][0-9]* | 'Python '[4-9].*) ;;\n"
         "    *) continue ;;\n"
         "  esac\n"
         "  printf '\\036python\\037%s' \"$(command -v \"$remote_python\")\"\n"
         "  printf '\\036version\\037%s' \"${remote_version#Python }\"\n"
         "  break\n"
         "done\n";
}

constexpr std::string_view program_script =
    "if command -v -- \"$remote_word\" >/dev/null 2>&1; then printf '\\036program\\037'; fi\n";

constexpr std::string_view mpi_script =
    "for remote_daemon in orted prted hydra_pmi_proxy; do\n"
    "  if command -v \"$remote_daemon\" >/dev/null 2>&1; then printf '\\036daemon\\037' && break; fi\n"
    "done\n"
    "printf '\\036mpirun\\037'\n"
    "mpirun --version </dev/null 2>/dev/null\n"
    "printf '\\036end\\037'\n";  // an EXIT trap of the activation may print more

constexpr std::string_view python_code_script = "\"$remote_word\" -c \"$remote_other\" 2>/dev/null\n";

std::string make_gpus_script() {
  std::string script;
  for (const std::string_view variable : rules::visibility_variables) {
    const std::string name(variable);
    script +=
        "[ -z \"${" + name + "+set}\" ] || printf '\\036visible\\037" + name + "=%s' \"$" + name + "\"\n";
  }
  return script + "printf '\\036folders\\037%s' \"$PATH\"\n";
}

RunResult run_entered(const Host& host, const std::string& activation, std::string_view script,
                      const std::string& word, const std::string& other, std::chrono::milliseconds limit) {
  return run(host, {.argv = {"sh", "-c", std::string(enter_script) + std::string(script), "sh", activation,
                             word, other},
                    .limit = limit,
                    .max_output = std::size_t{64} << 10U});
}

void read_record(std::string_view record, Activation& found, std::map<std::string, std::string>& visible) {
  const std::size_t mark = record.find(value_mark);
  if (mark == std::string_view::npos) {
    return;
  }
  const std::string_view key = record.substr(0, mark);
  const std::string_view value = record.substr(mark + 1);
  if (key == "python" && value.starts_with('/')) {
    found.python = value;
  } else if (key == "version") {
    found.python_version = value.substr(0, value.find_first_not_of("0123456789."));
  } else if (key == "temporary") {
    found.temporary = value;
  } else if (key == "path") {
    found.python_path = value;
  } else if (key == "home") {
    found.python_home = value;
  } else if (key == "failed") {
    found.prologue_failure = parse_number<std::uint8_t>(value);
  } else if (key == "isolated") {
    found.is_isolated = !value.empty();
  } else if (key == "program") {
    found.has_program = true;
  } else if (key == "daemon") {
    found.has_mpi_daemon = true;
  } else if (key == "folders") {
    found.gpus.emplace(GpuEnvironment{std::string(value), visible});
  } else if (key == "visible") {
    if (const std::size_t equals = value.find('='); equals != std::string_view::npos) {
      visible.emplace(value.substr(0, equals), wire::to_line(value.substr(equals + 1), 4096));
    }
  } else if (key == "mpirun") {
    found.mpirun = value;
  }
}

Activation run_script(const Host& host, const std::string& activation, const std::string& script,
                      const std::string& program, std::chrono::milliseconds limit) {
  Activation found;
  std::map<std::string, std::string> visible;
  for (const std::string& record :
       split(run_entered(host, activation, script, program, "", limit).out, record_mark)) {
    read_record(record, found, visible);
  }
  // An alias or a function has no path, so the agent cannot start it.
  if (found.python.empty() || found.python_version.empty()) {
    found.python = {};
    found.python_version.clear();
  }
  return found;
}

}  // namespace

Activation activate(const Host& host, const wire::FactsRequest& request, std::chrono::milliseconds limit) {
  std::string script = std::string(variables_script) + (request.gpus ? make_gpus_script() : "");
  if (request.python) {
    script += make_python_script();
  }
  if (request.program) {
    script += program_script;
  }
  if (request.mpi) {
    script += mpi_script;  // last, because mpirun may hang
  }
  Activation found = run_script(host, request.activate, script, request.program.value_or(""), limit);
  if (request.python && found.python.empty()) {
    const FoundPython plain = find_python(host, "");
    found.is_isolated = !host.variable("PYTHONNOUSERSITE").empty();
    if (plain.program.is_absolute() && !plain.version.empty()) {
      found.python = plain.program;
      found.python_version = plain.version;
    }
    found.python_refusal = plain.refusal;
  } else {
    found.text = request.activate;
  }
  return found;
}

std::optional<GpuEnvironment> find_gpu_environment(const Host& host, const std::string& activation) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::map<std::string, std::string>>, GpuEnvironment> known;
  const auto key = std::tuple(activation, host.environment);
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = known.find(key); found != known.end()) {
      return found->second;
    }
  }
  wire::FactsRequest request{.activate = activation};
  request.gpus = wire::GpuDetail::brief;
  std::optional<GpuEnvironment> entered = activate(host, request).gpus;
  if (entered) {
    const std::scoped_lock lock(mutex);
    known.insert_or_assign(key, *entered);
  }
  return entered;
}

std::string ask_python(const Host& host, const Activation& activation, std::string_view code) {
  const RunResult result = run_entered(host, activation.text, python_code_script, activation.python.string(),
                                       std::string(code), std::chrono::seconds(5));
  const std::string_view out = result.out;
  return result.succeeded() ? std::string(out.substr(0, out.find_last_not_of('\n') + 1)) : "";
}

}  // namespace remote::agent
