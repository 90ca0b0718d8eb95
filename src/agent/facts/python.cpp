#include "agent/facts/python.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/provision/find_python.hpp"
#include "base/package_name.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t longest_package = 200;
constexpr std::size_t most_packages = 5000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Returns the position of the version in "NAME-VERSION"; npos if it has none.
std::size_t find_version(std::string_view folder) {
  std::size_t dash = 0;
  do {
    dash = folder.find('-', dash + 1);
  } while (dash != std::string_view::npos && (dash + 1 == folder.size() || !is_digit(folder[dash + 1])));
  return dash == std::string_view::npos ? dash : dash + 1;
}

// Adds the package "NAME-VERSION". Skips other names, such as "~umpy-1.26.4", which pip leaves behind.
void add_package(std::string_view folder, bool is_distribution, ServerFacts& facts) {
  const std::size_t begin = find_version(folder);
  const bool is_plain = std::ranges::all_of(folder, [](char c) {
    return is_alphanumeric(c) || std::string_view("._-+!").find(c) != std::string_view::npos;
  });
  if (!is_plain || begin == std::string_view::npos || folder.size() > longest_package ||
      facts.packages.size() >= most_packages) {
    return;
  }
  const std::string_view rest = folder.substr(begin);
  const std::string version(rest.substr(0, rest.find("-py")));
  const std::string name = normalize_package(folder.substr(0, begin - 1));
  // If a package is in several folders of sys.path, the first one counts.
  facts.packages.try_emplace(name, PackageFacts{version, is_distribution});
  if (facts.nccl.empty() && name.starts_with("nvidia-nccl")) {
    facts.nccl = version;
  }
}

// The version in "NAME = 'VERSION'" or "NAME: TYPE = 'VERSION'"; "" if the value is not a version.
std::string read_assigned_version(std::string_view line) {
  const std::size_t equals = line.rfind('=');
  if (equals == std::string_view::npos) {
    return {};
  }
  std::string_view value = line.substr(equals + 1);
  value.remove_prefix(std::min(value.find_first_not_of("'\" \t"), value.size()));
  value = value.substr(0, value.find_first_of("'\" \t"));
  const bool is_version = !value.empty() && is_digit(value.front()) && value.size() <= longest_package &&
                          std::ranges::all_of(value, [](char c) {
                            return is_alphanumeric(c) || c == '.' || c == '+' || c == '_' || c == '-';
                          });
  return is_version ? std::string(value) : "";
}

void read_torch_version(const Path& file, ServerFacts& facts) {
  for (const std::string& each : read_lines(file)) {
    const std::string_view line = trim(each);
    const std::string_view name = line.substr(0, line.find_first_of(" \t:="));
    std::string* const place = name == "__version__" ? &facts.torch
                               : name == "cuda"      ? &facts.cuda
                               : name == "hip"       ? &facts.hip
                                                     : nullptr;
    if (place != nullptr) {
      if (const std::string version = read_assigned_version(line); !version.empty()) {
        *place = version;
      }
    }
  }
}

// Reads the package folders, in the order of sys.path.
class PackageReader {
 public:
  PackageReader(ServerFacts& facts, bool with_list) : facts_(facts), with_list_(with_list) {}

  void read(const Path& folder, bool is_distribution = false) {
    if (!is_folder(folder) || ::access(folder.c_str(), X_OK) != 0) {
      return;
    }
    found_ = true;
    if (with_list_) {
      add_packages(folder, is_distribution);
    }
    const Path version = folder / "torch/version.py";
    if (!has_torch_ && ::access(version.c_str(), R_OK) == 0) {
      has_torch_ = true;
      read_torch_version(version, facts_);
    }
  }
  // Whether any of the folders exists.
  bool found() const { return found_; }

 private:
  void add_packages(const Path& folder, bool is_distribution) {
    const std::vector<std::string> names = list_names(folder);
    for (const std::string_view ending : {".dist-info", ".egg-info"}) {
      for (const std::string& name : names) {
        if (name.ends_with(ending) && !name.starts_with('.')) {
          add_package(name.substr(0, name.size() - ending.size()), is_distribution, facts_);
        }
      }
    }
  }

  ServerFacts& facts_;
  bool with_list_;
  bool found_ = false;
  bool has_torch_ = false;
};

// The environment's base, from pyvenv.cfg.
struct VirtualEnvironment {
  Path home;  // the folder of the Python that created it
  bool has_system_packages = false;
};

std::optional<VirtualEnvironment> read_virtual_environment(const Path& prefix) {
  const std::optional<std::string> text = read_file(prefix / "pyvenv.cfg");
  if (!text) {
    return std::nullopt;
  }
  VirtualEnvironment environment;
  for (const std::string& line : split(*text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) {
      continue;
    }
    const std::string_view name = trim(std::string_view(line).substr(0, equals));
    const std::string_view value = trim(std::string_view(line).substr(equals + 1));
    if (name == "home") {
      environment.home = value;
    } else if (name == "include-system-site-packages") {
      environment.has_system_packages = lower_case(value) == "true";
    }
  }
  return environment;
}

// "3.11" of "3.11.2".
std::string shorten_version(std::string_view version) {
  const std::size_t dot = version.find('.');
  return std::string(version.substr(0, dot == std::string_view::npos ? dot : version.find('.', dot + 1)));
}

// The folder above the last "/bin/".
std::string find_prefix(const std::string& program) {
  return program.substr(0, program.rfind("/bin/"));
}

void read_all_packages(const Host& host, const Activation& activation, PackageReader& reader) {
  const std::string library = "python" + shorten_version(activation.python_version);
  std::string prefix = find_prefix(activation.python.string());
  if (const auto environment = read_virtual_environment(prefix)) {
    reader.read(Path(prefix) / "lib" / library / "site-packages");
    if (!environment->has_system_packages) {
      return;
    }
    prefix = environment->home.string();
    if (prefix.ends_with("/bin")) {
      prefix.resize(prefix.size() - std::string_view("/bin").size());
    }
  }
  if (!activation.is_isolated) {
    reader.read(host.home / ".local/lib" / library / "site-packages");
  }
  reader.read(prefix + "/lib/" + library + "/site-packages");
  reader.read(prefix + "/lib64/" + library + "/site-packages");
  if (prefix == "/usr" || prefix.empty()) {
    reader.read(host.system("/usr/local/lib/" + library + "/dist-packages"));
    reader.read(host.system("/usr/lib/python3/dist-packages"), true);
  }
}

bool is_managed_by_distribution(const Host& host, const Activation& activation) {
  const std::string prefix = find_prefix(activation.python.string());
  const std::string file = "/lib/python" + shorten_version(activation.python_version) + "/EXTERNALLY-MANAGED";
  const bool is_own = prefix == "/usr" || prefix.empty();
  return !exists(Path(prefix) / "pyvenv.cfg") &&
         exists(is_own ? host.system("/usr" + file) : Path(prefix + file));
}

}  // namespace

void read_python(const Host& host, const wire::FactsRequest& request, const Activation& activation,
                 ServerFacts& facts) {
  if (activation.python.empty()) {
    facts.python_refusal = activation.python_refusal;
    if (request.python.value_or(false)) {  // starts shells, and only `check` uses it
      facts.hidden_python = wire::to_line(find_hidden_python(host, "").string(), 4096);
    }
    return;
  }
  facts.python = wire::to_line(activation.python_version);
  facts.python_program = wire::to_line(activation.python.string(), 4096);
  facts.python_managed = is_managed_by_distribution(host, activation);
  PackageReader reader(facts, request.python.value_or(false));
  read_all_packages(host, activation, reader);
  if (!reader.found()) {  // a Python with another layout, or a shim script
    const std::string folder =
        ask_python(host, activation, "import sysconfig; print(sysconfig.get_path(\"purelib\"))");
    if (folder.starts_with('/')) {
      reader.read(folder);
    }
  }
}

}  // namespace remote::agent
