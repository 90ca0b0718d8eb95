// Findings about a single server: its clock, login, Python and programs.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "project/check/judge.hpp"
#include "rules/usable.hpp"
#include "servers/container.hpp"
#include "servers/facts.hpp"
#include "servers/python_env.hpp"

namespace remote::project {
namespace {

// A larger difference causes problems with certificates, tickets and the order of events; time daemons keep
// it below a second.
constexpr std::chrono::seconds most_clock_difference{5};

Finding judge_rsync(const ServerFacts& facts) {
  if (facts.programs.contains("rsync")) {
    return {"rsync", CheckStatus::ok, "is installed", {}};
  }
  if (!facts.hidden_rsync.empty()) {  // a transfer also searches its folder: see RsyncTunnel
    return {"rsync", CheckStatus::warn,
            fmt::format("{} is not on the login's PATH: the project can be sent, but jobs find no program of "
                        "that folder",
                        facts.hidden_rsync),
            Fix{Fix::Where::advice,
                "let the login shell's start files there add to PATH instead of replacing it"}};
  }
  return {"rsync", CheckStatus::fail, "is not installed, so the project cannot be sent",
          Fix{Fix::Where::server_as_root, "apt-get install -y rsync || dnf install -y rsync"}};
}

// Why a run cannot work in this folder although it is writable.
Finding judge_flaw(const ServerFacts& facts, const DiskFacts& disk) {
  const std::string said = fmt::format("{}: {}", disk.path, facts.flaw_text);
  const Fix elsewhere{Fix::Where::advice, "choose another remote_path in configs.yaml"};
  const auto lacks = [&](const char* what) {
    return Finding{
        "project", CheckStatus::fail,
        fmt::format("the file system ({}) does not keep {}, which a run needs: {}", disk.type, what, said),
        elsewhere};
  };
  switch (facts.flaw) {
    case FolderFlaw::quota:
      return {"project", CheckStatus::fail, "the quota of this login is used up: " + said,
              Fix{Fix::Where::server, "quota -s"}};
    case FolderFlaw::full:
      return {"project", CheckStatus::fail, "no space left to write: " + said,
              Fix{Fix::Where::server, list_large_folders(disk.path)}};
    case FolderFlaw::no_modes:
      return lacks("modes");
    case FolderFlaw::no_locks:
      return lacks("locks");
    case FolderFlaw::no_links:
      return lacks("links and pipes");
    default:
      return {"project", CheckStatus::fail, "a file cannot be written there: " + said, elsewhere};
  }
}

Finding judge_project(const config::Config& config, const config::Server& server, const ServerFacts& facts) {
  const DiskFacts* disk = facts.disk("project");
  const std::string path = config.project_path_on(server);
  if (disk == nullptr) {
    return {"project", CheckStatus::skip, path + " could not be checked", {}};
  }
  if (disk->there && disk->writable && facts.jobs_closed) {
    const std::string jobs = path + "/" + config.remote_jobs_folder_name;
    return {"project", CheckStatus::fail,
            jobs + " is not a folder that this user can write to: no job starts",
            Fix{Fix::Where::advice, "make it a folder of this user, or move it away"}};
  }
  if (disk->writable && facts.flaw != FolderFlaw::none) {
    return judge_flaw(facts, *disk);
  }
  if (disk->there && disk->writable && !facts.open_path.empty()) {
    return {"project", CheckStatus::warn,
            facts.open_path + " is writable by other users, so they could change the code that runs",
            Fix{Fix::Where::server, "chmod -R go-w " + remote_path_word(path)}};
  }
  if (disk->there && disk->writable) {
    return {"project", CheckStatus::ok, path + " is there", {}};
  }
  if (disk->there) {
    return {"project", CheckStatus::fail, path + " cannot be written by this login",
            Fix{Fix::Where::server_as_root, fmt::format("chown {0} {1} && chmod u+rwx {1}",
                                                        shell_quote(facts.user), shell_quote(disk->path))}};
  }
  if (!disk->dangling.empty()) {
    return {"project", CheckStatus::fail,
            fmt::format("{} is a link to {}, which does not exist", path, disk->dangling),
            Fix{Fix::Where::advice, "mount the disk of the link's target, or remove the link"}};
  }
  if (!disk->writable) {
    return {"project", CheckStatus::fail,
            fmt::format("{} is not there, and {} cannot be written by this login", path, disk->path),
            Fix{Fix::Where::advice, "set remote_path in configs.yaml to a folder of this user"}};
  }
  // If the environment is also missing, one command creates both.
  return {"project", CheckStatus::warn, path + " is not there yet",
          config.python.manager == config::PythonManager::system
              ? Fix{Fix::Where::server, "mkdir -p " + remote_path_word(path), true}
              : Fix{Fix::Where::here, "remote prepare --server " + server.name}};
}

Finding judge_prologue(const config::Server& server, int status) {
  return {
      "prologue",
      server.slurm ? CheckStatus::warn : CheckStatus::fail,  // it may work on the nodes
      fmt::format("the prologue in configs.yaml fails there (exit code {}), and with it every job", status),
      Fix{Fix::Where::advice,
          fmt::format("remote run --server {} true shows its output", shell_quote(server.name))}};
}

Finding judge_environment(const config::Config& config, const config::Server& server,
                          const ServerFacts& facts) {
  const std::string folder = servers::environment_folder(config, server);
  if (config.python.manager == config::PythonManager::system) {
    return {"environment", CheckStatus::ok, "the server's own Python is used", {}};
  }
  const DiskFacts* disk = facts.disk("environment");
  if (disk == nullptr) {
    return {"environment", CheckStatus::skip, folder + " could not be checked", {}};
  }
  const Fix make{Fix::Where::here, "remote prepare --server " + server.name};
  // Caused by an update of the Python that created it. Not reported with a prologue, because that may select
  // another Python.
  const std::string program = std::filesystem::path(facts.python_program).lexically_normal().string();
  if (disk->there && config.prologue_on(server).empty() && !program.empty() &&
      !program.starts_with(std::filesystem::path(disk->path + "/").lexically_normal().string())) {
    return {"environment", CheckStatus::fail, folder + " is there, and has no working Python", make};
  }
  if (disk->there) {
    return {"environment", CheckStatus::ok, folder + " is there", {}};
  }
  return {"environment", CheckStatus::warn, folder + " is not there yet: the server's own Python would run",
          make};
}

Finding judge_python(const ServerFacts& facts) {
  if (facts.python.empty() && !facts.hidden_python.empty()) {
    const std::string folder = facts.hidden_python.substr(0, facts.hidden_python.rfind('/'));
    return {
        "python", CheckStatus::fail,
        fmt::format("jobs find no python3: {} is not on their PATH", visible_line(facts.hidden_python, 300)),
        Fix{Fix::Where::advice, fmt::format("`prologue: export PATH={}:$PATH` in configs.yaml",
                                            shell_quote(visible_line(folder, 300)))}};
  }
  if (facts.python.empty()) {
    return {"python", CheckStatus::fail,
            facts.python_refusal.empty()
                ? "no python3 was found"
                : fmt::format("no working python3 was found; {}", visible_line(facts.python_refusal, 300)),
            Fix{Fix::Where::server_as_root, "apt-get install -y python3 || dnf install -y python3"}};
  }
  return {"python", CheckStatus::ok, fmt::format("{} ({})", facts.python, facts.python_program), {}};
}

void judge_python_variables(const ServerFacts& facts, std::vector<Finding>& findings) {
  const auto warn = [&](const char* name, const std::string& value, const char* effect) {
    if (!value.empty()) {
      findings.push_back(
          {"python-path", CheckStatus::warn,
           fmt::format("the login sets {}={}: {}", name, visible_line(value, 200), effect),
           Fix{Fix::Where::advice, fmt::format("if the project does not need it, `prologue: unset "
                                               "{}` in configs.yaml",
                                               name)}});
    }
  };
  warn("PYTHONPATH", facts.python_path, "modules there replace those of the environment");
  warn("PYTHONHOME", facts.python_home, "Python takes its standard library from there");
}

Finding judge_logout(const ServerFacts& facts) {
  constexpr std::uint32_t first_user = 1000;  // logind does not remove the shared memory of system users
  const bool ends_jobs = servers::logout_ends_jobs(facts, facts.user);
  if (const DiskFacts* disk = facts.disk("project");
      !ends_jobs && disk != nullptr && !disk->access_needs.empty()) {
    return {"logout", CheckStatus::warn,
            fmt::format("jobs outlive the login, but to read {} they need {}, which may end with the last "
                        "login",
                        disk->path, disk->access_needs),
            Fix{Fix::Where::advice, "choose a remote_path on another disk of the server"}};
  }
  if (!ends_jobs && facts.removes_ipc && facts.in_session && !facts.linger && facts.uid >= first_user) {
    return {"logout", CheckStatus::warn,
            "jobs outlive the login, but at the last logout systemd removes this user's files in /dev/shm "
            "(RemoveIPC=yes), which a DataLoader's workers and NCCL use",
            Fix{Fix::Where::server, "loginctl enable-linger", true}};
  }
  if (!ends_jobs) {
    return {"logout", CheckStatus::ok, "jobs outlive the login", {}};
  }
  return logout_finding(facts.kill_excluded, facts.user);
}

void judge_places(const config::Server& server, const ServerFacts& facts, std::vector<Finding>& findings) {
  if (server.slurm) {
    findings.push_back(
        facts.programs.contains("sbatch")
            ? Finding{"slurm", CheckStatus::ok, "sbatch is there", {}}
            : Finding{
                  "slurm", CheckStatus::fail, "configs.yaml says `scheduler: slurm`, but there is no sbatch",
                  Fix{Fix::Where::advice, "name a login node of Slurm, or load its module in `prologue:`"}});
  }
  if (!server.container || server.container->image.empty()) {
    return;
  }
  const std::string wanted = servers::engine_word(*server.container);
  std::vector<std::string> found;
  for (const char* engine : {"docker", "podman", "apptainer"}) {
    if (facts.programs.contains(engine) && (wanted.empty() || wanted == engine)) {
      found.emplace_back(engine);
    }
  }
  if (found.empty()) {
    const std::string package = wanted.empty() ? "podman" : (wanted == "docker" ? "docker.io" : wanted);
    findings.push_back({"container", CheckStatus::fail,
                        (wanted.empty() ? "no docker, podman or apptainer" : wanted) +
                            " was found, but jobs run in a container",
                        Fix{Fix::Where::server_as_root, "apt-get install -y " + package}});
    return;
  }
  if (found.front() == "podman" && facts.in_session && !facts.linger && facts.uid != 0U) {
    findings.push_back({"container", CheckStatus::warn,
                        "containers of rootless podman end at logout, because lingering is off for this user",
                        Fix{Fix::Where::server, "loginctl enable-linger", true}});
    return;
  }
  findings.push_back({"container", CheckStatus::ok, join(found, ", ") + " was found", {}});
}

int major_of(std::string_view version) {
  return parse_number<int>(version.substr(0, version.find('.'))).value_or(0);
}

// The newest CUDA version that the driver supports, or only its major version, "12.x"; "": unknown.
std::string find_driver_cuda(const ServerFacts& facts) {
  const auto nvidia = std::ranges::find_if(facts.gpus.tools, [](const GpuTool& tool) {
    return tool.program == "nvidia-smi" && tool.state == GpuToolState::answered;
  });
  if (nvidia == facts.gpus.tools.end()) {
    return "";
  }
  if (!nvidia->library_version.empty()) {
    return visible_line(nvidia->library_version, 20);
  }
  // The oldest driver for each CUDA version on Linux, from NVIDIA's "CUDA Compatibility".
  constexpr std::array<std::pair<int, const char*>, 3> oldest{{{580, "13.x"}, {525, "12.x"}, {450, "11.x"}}};
  const int driver = major_of(nvidia->driver_version);
  const auto* const found =
      std::ranges::find_if(oldest, [&](const auto& each) { return driver >= each.first; });
  return found == oldest.end() ? "" : found->second;
}

// Why this torch cannot use the server's GPUs, judging only by versions; "" if they match.
std::string find_torch_problem(const ServerFacts& facts) {
  const UsableGpus gpus = rules::count_gpus(facts.gpus);
  if (gpus.there.empty() || gpus.vendor == GpuVendor::intel) {
    return "";
  }
  if (facts.cuda.empty() && facts.hip.empty()) {
    return "it is built for CPUs only, but the server has " + counted(gpus.there.size(), "GPU");
  }
  if (gpus.vendor == GpuVendor::amd) {
    return facts.hip.empty() ? "it is built for CUDA, but the server has AMD GPUs" : "";
  }
  if (facts.cuda.empty()) {
    return "it is built for ROCm, but the server has NVIDIA GPUs";
  }
  // Within a major version, a newer CUDA works with an older driver.
  const std::string driver = find_driver_cuda(facts);
  return major_of(driver) > 0 && major_of(facts.cuda) > major_of(driver)
             ? "the driver supports CUDA up to " + driver
             : "";
}

}  // namespace

Finding torch_finding(const ServerFacts& facts) {
  if (facts.torch.empty()) {
    // Not every project needs it.
    return {"torch", CheckStatus::skip, "is not among the packages", {}};
  }
  std::string detail = facts.torch;
  if (!facts.cuda.empty()) {
    detail += ", CUDA " + facts.cuda;
  }
  if (!facts.hip.empty()) {
    detail += ", ROCm " + facts.hip;
  }
  if (!facts.nccl.empty()) {
    detail += ", NCCL " + facts.nccl;
  }
  if (const std::string problem = find_torch_problem(facts); !problem.empty()) {
    return {"torch", CheckStatus::warn, detail + ": " + problem,
            Fix{Fix::Where::advice,
                fmt::format(
                    "choose wheels for {} (`index_url` of `python:` in configs.yaml), and prepare the server "
                    "again",
                    rules::count_gpus(facts.gpus).vendor == GpuVendor::amd ? "ROCm" : "the driver's CUDA")}};
  }
  return {"torch", CheckStatus::ok, detail, {}};
}

Finding clock_finding(std::chrono::duration<double> ahead) {
  if (std::chrono::abs(ahead) <= most_clock_difference) {
    return {"clock", CheckStatus::ok, "agrees with this machine's", {}};
  }
  return {"clock", CheckStatus::warn,
          fmt::format("{:.0f} s {} this machine's", std::abs(ahead.count()),
                      ahead.count() > 0 ? "ahead of" : "behind"),
          Fix{Fix::Where::server_as_root, "timedatectl set-ntp true"}};
}

Finding sick_finding(const std::string& sick, const std::string& server) {
  const std::string why = sick == "gpu"   ? "a GPU failed"
                          : sick == "ecc" ? "the memory of a GPU failed (ECC)"
                          : sick == "xid" ? "the driver reported an error of a GPU (Xid)"
                                          : "its disk failed, or was full";
  return {"sick", CheckStatus::warn, "a launch excluded it after two failures: " + why,
          Fix{Fix::Where::here, "remote check --well " + shell_quote(server)}};
}

Finding logout_finding(std::vector<std::string> excluded, const std::string& user) {
  if (excluded.empty()) {
    excluded.emplace_back("root");  // logind's default
  }
  excluded.push_back(user);
  const std::string text = "[Login]\\nKillExcludeUsers=" + join(excluded, " ") + "\\n";
  return {
      "logout", CheckStatus::fail,
      "logind kills all processes of a user at logout (KillUserProcesses=yes), so jobs would die",
      Fix{Fix::Where::server_as_root,
          fmt::format(
              "mkdir -p /etc/systemd/logind.conf.d && printf {} >/etc/systemd/logind.conf.d/remote.conf && "
              "systemctl restart systemd-logind",
              shell_quote(text))}};
}

std::vector<Finding> judge_server(const config::Config& config, const config::Server& server,
                                  const ServerFacts& facts) {
  std::vector<Finding> findings;
  judge_machine(facts, findings);
  findings.push_back(clock_finding(facts.clock_ahead));
  if (!facts.sick.empty()) {
    findings.push_back(sick_finding(facts.sick, server.name));
  }
  findings.push_back(judge_rsync(facts));
  findings.push_back(judge_logout(facts));
  judge_disks(facts, findings);
  findings.push_back(judge_project(config, server, facts));
  if (facts.prologue_failure) {
    findings.push_back(judge_prologue(server, *facts.prologue_failure));
  }
  findings.push_back(judge_environment(config, server, facts));
  findings.push_back(judge_python(facts));
  judge_python_variables(facts, findings);
  findings.push_back(torch_finding(facts));
  judge_gpus(server, facts, findings);
  judge_places(server, facts, findings);
  return findings;
}

}  // namespace remote::project
