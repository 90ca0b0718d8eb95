#include "agent/slurm/tools.hpp"

#include <cstddef>

#include "agent/host/login_path.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view known_folders =
    ":/opt/slurm/bin:/usr/local/slurm/bin:/usr/slurm/bin:/usr/local/bin:/cm/shared/apps/slurm/current/bin";

// Whether to copy this variable from a startup file.
bool is_for_programs(std::string_view name) {
  return name == "PATH" || name == "LD_LIBRARY_PATH" || name.starts_with("SLURM_");
}

// Runs a startup file in /etc/profile.d and copies these variables.
void read_start_file(Host& host, const std::string& file) {
  constexpr std::string_view mark = "@environment";
  const RunRequest request{
      .argv = {"sh", "-c", ". \"$1\" >/dev/null 2>&1 </dev/null; printf '\\n@environment\\n'; env", "sh",
               file},
      .limit = std::chrono::seconds(5)};
  bool is_environment = false;
  for (const std::string& line : split(run(host, request).out, '\n')) {
    const std::size_t end = line.find('=');
    if (line == mark) {
      is_environment = true;
    } else if (is_environment && end != std::string::npos && is_for_programs(line.substr(0, end))) {
      host.environment[line.substr(0, end)] = line.substr(end + 1);
    }
  }
}

// Whether it is a user's setting that filters jobs, changes the output, or makes scancel ask for
// confirmation.
bool is_setting(std::string_view name) {
  return name.starts_with("SQUEUE_") || name.starts_with("SCANCEL_") || name == "SLURM_TIME_FORMAT";
}

// Like run(), but if the program cannot be started and its stderr is requested, returns the reason as the
// output.
RunResult run_or_explain(const Host& host, const RunRequest& request) {
  try {
    return run(host, request);
  } catch (const CannotStart& error) {
    RunResult result;
    result.out = request.with_stderr ? error.what() : "";
    return result;
  }
}

}  // namespace

SlurmTools::SlurmTools(const Host& host) : host_(host) {
  for (const auto& [name, value] : host.environment) {
    if (is_setting(name)) {
      settings_.insert(host_.environment.extract(name));
    }
  }
}

bool SlurmTools::find() {
  if (found_) {
    return *found_;
  }
  if (has("squeue")) {
    found_ = true;
    return true;
  }
  try {
    const Path folder = host_.system("/etc/profile.d");
    for (const std::string& name : list_names(folder)) {
      if (name.find("slurm") != std::string::npos && name.ends_with(".sh")) {
        read_start_file(host_, folder / name);
      }
    }
    if (!has("squeue")) {
      host_.environment["PATH"] += known_folders;
    }
    if (!has("squeue")) {
      host_ = add_login_path(host_);
    }
  } catch (const CannotStart&) {
    return false;
  }
  found_ = has("squeue");
  return *found_;
}

std::vector<std::string> SlurmTools::list_variables() const {
  std::vector<std::string> variables = host_.list_variables();
  std::erase_if(variables, [](const std::string& variable) {
    return !is_for_programs(std::string_view(variable).substr(0, variable.find('=')));
  });
  return variables;
}

RunResult SlurmTools::call(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                           bool with_stderr, int input) const {
  constexpr std::size_t max_output = std::size_t{32} << 20U;
  return run_or_explain(
      host_,
      {.argv = argv, .limit = limit, .with_stderr = with_stderr, .max_output = max_output, .input = input});
}

RunResult SlurmTools::call_as_job(const std::vector<std::string>& argv, const Path& folder,
                                  std::chrono::milliseconds limit) const {
  Host host = host_;
  host.environment.insert(settings_.begin(), settings_.end());
  host.environment["PWD"] = folder;
  if (const auto path = host.set_aside.find("PATH"); path != host.set_aside.end()) {
    Host usual;
    usual.environment["PATH"] = path->second;
    // Otherwise the job would not find srun either.
    if (usual.find_program(argv.front()).empty()) {
      host.set_aside.erase(path);
    }
  }
  return run_or_explain(
      host, {.argv = argv, .folder = folder, .limit = limit, .with_stderr = true, .is_job = true});
}

wire::SlurmProgramsReply find_slurm_programs(const Host& host) {
  SlurmTools tools(host);
  return tools.find() ? wire::SlurmProgramsReply{tools.list_variables()} : wire::SlurmProgramsReply{};
}

std::string find_last_line(std::string_view text) {
  std::string last;
  for (const std::string& line : split(text, '\n')) {
    // Slurm prints this hint after the error about a wrong option.
    const bool is_hint =
        line.find("Try \"s") != std::string::npos && line.ends_with("--help\" for more information");
    if (!line.empty() && !is_hint) {
      last = line;
    }
  }
  return wire::to_line(last);
}

}  // namespace remote::agent
