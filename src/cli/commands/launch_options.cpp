#include "cli/commands/launch_options.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <remote/launch_texts.hpp>

#include "base/decimal.hpp"
#include "base/files.hpp"
#include "base/strings.hpp"
#include "cli/given_file.hpp"
#include "cli/options.hpp"

namespace remote::cli {

void HostOptions::add(CLI::App& command, CLI::Option* servers) {
  CLI::Option* hostfile = command.add_option(
      "--hostfile", hostfile_, "Hostfile of MPI or DeepSpeed: lines of HOST or HOST slots=N, in rank order");
  hostfile->type_name("FILE")->excludes(servers);
  command.add_option("-H,--host", hosts_, "Servers and their ranks: a,b or a:2,b:2")
      ->type_name("HOSTS")
      ->excludes(servers)
      ->excludes(hostfile);
  CLI::Option* include = command.add_option(
      "--include", include_, "Servers or GPUs to use, as DeepSpeed writes them: SERVER[:GPU,…]@SERVER…");
  include->type_name("SPEC")->excludes(servers);
  command.add_option("--exclude", exclude_, "Servers or GPUs to exclude")
      ->type_name("SPEC")
      ->excludes(servers)
      ->excludes(include);
}

void HostOptions::choose(Context& context, const std::vector<std::string>& servers, bool forget_slots,
                         LaunchRequest& request) const {
  std::vector<LaunchHost> hosts;
  if (!hostfile_.empty()) {
    hosts = parse_hostfile(read_given_file("--hostfile", expand_home(hostfile_)), hostfile_);
  } else if (!hosts_.empty()) {
    hosts = parse_host_list(hosts_);
  }
  request.hosts = context.project().resolve_hosts(hosts);
  if (!include_.empty() || !exclude_.empty()) {
    filter(context, servers, request.hosts);
  }
  if (forget_slots) {
    for (LaunchHost& host : request.hosts) {
      host.slots.reset();
    }
  }
}

void HostOptions::filter(Context& context, const std::vector<std::string>& servers,
                         std::vector<LaunchHost>& hosts) const {
  const bool include = !include_.empty();
  std::vector<LaunchHost> named;
  for (const LaunchHost& one :
       include ? parse_host_filter(include_, "--include") : parse_host_filter(exclude_, "--exclude")) {
    named.push_back(context.project().resolve_hosts({one}).front());  // one by one: they may repeat a server
  }
  if (hosts.empty()) {
    for (const std::string& name :
         context.project().server_names(include ? std::vector<std::string>{} : servers)) {
      hosts.push_back({.name = name});
    }
  }
  hosts = include ? include_hosts(hosts, named) : exclude_hosts(hosts, named);
}

void InitMethodOptions::add(CLI::App& command) {
  command
      .add_option(
          "--init-method", method_,
          "Value of INIT_METHOD for init_process_group(): tcp://… of the master, or a file on a shared "
          "folder; env sets none (default)")
      ->check(CLI::IsMember({"env", "tcp", "file"}));
  command
      .add_option("--init-dir", dir_,
                  "Shared folder for --init-method file (default: the project's jobs folder)")
      ->type_name("DIR");
}

void InitMethodOptions::choose(const std::string& name, const LaunchDefaults& usual,
                               LaunchRequest& request) const {
  if (method_) {
    request.init_method = *parse_init_method(*method_);
  } else if (dir_) {
    request.init_method = InitMethod::file;  // the folder has no other purpose
  } else {
    request.init_method = usual.init_method.value_or(usual.init_dir ? InitMethod::file : InitMethod::env);
  }
  if (dir_ && request.init_method != InitMethod::file) {
    throw Error::usage(fmt::format("remote {}: --init-dir", name), "it works only with --init-method file",
                       "add --init-method file, or leave --init-dir out");
  }
  request.init_dir = dir_ ? *dir_ : usual.init_dir.value_or("");
}

void SlurmOptions::add(CLI::App& command, Context& context) {
  command.add_flag("--requeue", requeue_, "Slurm: run again if a node fails or the job is preempted");
  CLI::Option* option =
      command.add_option("--after", after_, "Slurm: start when this job has succeeded; repeatable");
  option->type_name("KEY")->take_all()->allow_extra_args(false);
  context.completers[option] = NameKind::jobs;
  struct Named {
    const char* name;
    const char* variable;
    const char* type;
    const char* help;
  };
  constexpr Named all[] = {
      {"--partition", "SBATCH_PARTITION", "NAME", "Slurm: the partition"},
      {"--account", "SBATCH_ACCOUNT", "NAME", "Slurm: the account"},
      {"--time", "SBATCH_TIMELIMIT", "TIME", "Slurm: the time limit (2:00:00)"},
      {"--qos", "SBATCH_QOS", "NAME", "Slurm: the quality of service"},
      {"--constraint", "SBATCH_CONSTRAINT", "FEATURES", "Slurm: features that the nodes must have"},
      {"--reservation", "SBATCH_RESERVATION", "NAME", "Slurm: the reservation"},
      {"--gpus-per-node", "SBATCH_GPUS_PER_NODE", "GPUS", "Slurm: GPUs per node: 4, or a100:4"}};
  for (const Named& one : all) {
    command
        .add_option_function<std::string>(
            one.name,
            [this, variable = one.variable](const std::string& value) { env_.emplace_back(variable, value); },
            one.help)
        ->type_name(one.type);
  }
  command
      .add_option_function<std::string>(
          "--sbatch",
          [this](const std::string& value) {
            for (const std::string& word : split_words(value)) {
              if (word.starts_with('-') || env_.empty() || env_.back().first != "SBATCH_OPTION") {
                env_.emplace_back("SBATCH_OPTION", word);
              } else {
                env_.back().second += " " + word;  // "-p gpu"
              }
            }
          },
          "Slurm: more options of sbatch ('--exclusive --mem=32G')")
      ->type_name("OPTIONS");
}

std::vector<Job> SlurmOptions::jobs_before(Context& context) const {
  if (after_.empty()) {
    return {};
  }
  JobsRequest request;
  request.selection.names = after_;
  request.some = true;
  request.ask = false;
  return context.project().jobs(request);
}

void WorkdirOption::add(CLI::App& command) {
  command
      .add_option("--workdir", given_,
                  "Working directory on the servers, in the project's folder (default: as here)")
      ->type_name("DIR");
}

namespace {

// The current folder, relative to the project; starts with ".." if it is outside.
std::filesystem::path place_in_project(const Context& context) {
  std::error_code ignored;
  return current_folder().lexically_relative(std::filesystem::canonical(context.folder(), ignored));
}

// --workdir is relative to the project's folder; a path that leads out of the project is relative to the
// current folder.
std::string workdir_named(const Context& context, const std::string& given) {
  const auto leads_out = [](const std::filesystem::path& path) {
    return path.empty() || *path.begin() == "..";
  };
  const std::filesystem::path named = std::filesystem::path(given).lexically_normal();
  if (named.is_absolute() || given.starts_with('~') || !leads_out(named)) {
    return given;
  }
  const std::filesystem::path from =
      context.options.project ? std::filesystem::path() : place_in_project(context);
  const std::filesystem::path meant =
      (from / named / ".").lexically_normal();  // ends with a slash, or is "."
  if (leads_out(from) || leads_out(meant)) {
    throw Error::usage("--workdir " + visible_line(given) + " is outside the project's folder", "",
                       "name a folder of the project, or a path on the servers that begins with / or ~/");
  }
  return meant == "." ? "." : meant.parent_path().string();
}

}  // namespace

void WorkdirOption::choose(Context& context, Env& env) const {
  if (given_ && given_->empty()) {
    throw Error::usage("--workdir is empty", "", "--workdir . is the project's folder");
  }
  if (given_) {
    env.emplace_back("REMOTE_WORKDIR", workdir_named(context, *given_));
    return;
  }
  const bool chosen = std::ranges::count(env, "REMOTE_WORKDIR", &Env::value_type::first) > 0;
  if (chosen || context.options.project) {
    return;
  }
  const std::filesystem::path below = place_in_project(context);
  if (below.empty() || below == "." || *below.begin() == ".." || *below.begin() == ".remote") {
    return;
  }
  env.emplace_back("REMOTE_WORKDIR", below.string());
  context.terminal.notice(fmt::format("working directory: {} (--workdir . for the project's folder)",
                                      visible_line(below.string())));
}

void RestartOptions::add(CLI::App& command) {
  add_number_option(command, "--restarts", restarts_,
                    "Times that all ranks start again after a failure (default: 0)", "N", 0, 1000);
  command
      .add_option("--restart-on", restart_on_,
                  "Failures that cause a restart: exit, signal, oom, lost, hang (default: any)")
      ->type_name("CAUSE")
      ->delimiter(',')
      ->check(CLI::IsMember({"any", "exit", "signal", "oom", "lost", "hang"}));
  command.add_option("--no-restart-exit", no_restart_exit_, "Exit codes of a rank that cause no restart")
      ->type_name("CODE")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_number_option(command, "--min-servers", min_servers_,
                    "Servers that are enough to start again when others are lost (default: all)", "N", 1,
                    100000);
}

void RestartOptions::choose(const std::string& name, const LaunchDefaults& usual,
                            LaunchRequest& request) const {
  request.restarts = restarts_.value_or(usual.restarts.value_or(0));
  const bool given = min_servers_ || !restart_on_.empty() || !no_restart_exit_.empty();
  if (request.restarts == 0) {
    if (given) {
      throw Error::usage(
          fmt::format(
              "remote {}: --restarts is required with --restart-on, --no-restart-exit and --min-servers",
              name),
          "", "say how often the ranks start again, such as --restarts 3");
    }
    return;  // then the restart settings in configs.yaml do not apply
  }
  request.min_servers = min_servers_ ? min_servers_ : usual.min_servers;
  if (std::ranges::any_of(no_restart_exit_, [](int code) { return code < 1 || code > 255; })) {
    throw Error::usage(fmt::format("remote {}: --no-restart-exit takes exit codes from 1 to 255", name), "",
                       "separate them by commas: --no-restart-exit 2,3");
  }
  request.no_restart_exit = no_restart_exit_.empty() ? usual.no_restart_exit : no_restart_exit_;
  request.restart_on = usual.restart_on;
  if (!restart_on_.empty()) {
    request.restart_on.clear();
    for (const std::string& word : restart_on_) {
      if (const auto cause = parse_restart_cause(word)) {
        request.restart_on.push_back(*cause);
      } else {  // any
        request.restart_on.clear();
        break;
      }
    }
  }
}

void LeaseOptions::add(CLI::App& command) {
  add_number_option(command, "--gpus", gpus_, "Free GPUs to lease, on each server", "N", 0, 1024);
  add_number_option(command, "--cpus", cpus_, "Cores to lease, on each server", "N", 0, 100000);
  command.add_option("--memory", memory_, "Memory to lease, on each server: 64G, 500M")->type_name("SIZE");
  add_switch(command, "--wait,!--no-wait", wait_, "Wait in line until the leased resources are free");
}

LeaseRequest LeaseOptions::choose(const LaunchDefaults& usual) const {
  LeaseRequest lease;
  lease.gpus = gpus_.value_or(usual.gpus.value_or(0));
  lease.cpus = cpus_.value_or(usual.cpus.value_or(0));
  lease.memory = usual.memory.value_or(0);
  if (!memory_.empty()) {
    const auto size = parse_size(memory_);
    if (!size) {
      throw Error::usage(fmt::format("wrong --memory '{}'", visible_line(memory_, 60)), "it is not a size",
                         "give a size such as 64G or 500M");
    }
    lease.memory = *size;
  }
  // The `wait` setting in configs.yaml has no effect without leases.
  lease.wait = wait_.value_or(lease.any() && usual.wait.value_or(false));
  return lease;
}

void HangOptions::add(CLI::App& command) {
  constexpr double most = 100000;
  command
      .add_option(
          "--hang-after", minutes_,
          "Minutes without output or work of any rank until the launch counts as hung (default: never)")
      ->type_name("MINUTES")
      ->check(CLI::Range(0.0, most));
  command.add_option("--on-hang", action_, "What to do then (default: leave)")
      ->check(CLI::IsMember({"leave", "kill", "restart"}));
}

void HangOptions::choose(const std::string& name, const LaunchDefaults& usual, LaunchRequest& request) const {
  request.hang_after = minutes_ ? std::chrono::seconds(std::llround(std::ceil(*minutes_ * 60)))
                                : usual.hang_after.value_or(std::chrono::seconds(0));
  if (request.hang_after.count() == 0) {
    if (action_) {
      throw Error::usage(fmt::format("remote {}: --hang-after is required with --on-hang", name), "",
                         "say after how many minutes, such as --hang-after 30");
    }
    return;
  }
  const bool starts_again =
      std::ranges::find(request.restart_on, RestartCause::hang) != request.restart_on.end();
  request.on_hang = usual.on_hang.value_or(starts_again ? OnHang::restart : OnHang::leave);
  if (action_) {
    request.on_hang = *parse_on_hang(*action_);
  }
}

void add_launcher_option(CLI::App& command, std::optional<std::string>& launcher) {
  std::vector<std::string> names;
  std::vector<std::string> descriptions;
  for (const LauncherInfo& info : launchers()) {
    names.emplace_back(to_string(info.launcher));
    descriptions.push_back(names.back() + ": " + info.description);
  }
  command.add_option("--launcher", launcher, join(descriptions, "; "))
      ->check([&command](const std::string& name) {
        if (name == "slurm" || name == "srun" || name == "sbatch") {
          throw Error::usage(fmt::format("remote {} has no launcher '{}'", command.get_name(), name), "",
                             "a login node of Slurm is a server with `scheduler: slurm` in configs.yaml; see "
                             "`remote help slurm`");
        }
        return std::string();
      })
      ->check(CLI::IsMember(names));
}

void AgentOptions::add(CLI::App& command) {
  command
      .add_option(
          "--rdzv,--rdzv-backend", rendezvous_,
          "torchrun: how its agents meet (default: static; c10d with --nnodes MIN:MAX or --max-restarts)")
      ->check(CLI::IsMember({"static", "c10d"}));
  command
      .add_option("--nnodes", nodes_,
                  "torchrun: continue while MIN servers are left; MAX is the number of servers")
      ->type_name("MIN:MAX");
  add_number_option(command, "--max-restarts", max_restarts_,
                    "torchrun: restarts of all workers after a failure (default: 0; 3 with --nnodes MIN:MAX)",
                    "N", 0, 1000000);
}

TorchrunOptions AgentOptions::choose(const TorchrunOptions& usual) const {
  TorchrunOptions options = usual;
  if (rendezvous_) {
    options.rendezvous = parse_rendezvous(*rendezvous_);
  }
  if (nodes_) {
    options.nodes = parse_node_range(*nodes_);
    if (!options.nodes) {
      throw Error::usage(
          fmt::format("wrong nnodes '{}'", *nodes_),
          "it must be MIN:MAX, such as 1:4, or a number; MIN must be at least 1, and MAX at least MIN");
    }
  }
  options.max_restarts = max_restarts_ ? max_restarts_ : usual.max_restarts;
  return options;
}

void add_image_option(CLI::App& command, std::optional<std::string>& image) {
  command.add_option("--image", image, "Container image, or none (default: the image in configs.yaml)")
      ->type_name("IMAGE");
}

std::string queued_words(const Job& job) {
  return fmt::format("queued ({})", visible_line(job.reason.text, 120));
}

}  // namespace remote::cli
