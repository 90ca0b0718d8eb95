#include "agent/container/enter_container.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/record.hpp"
#include "agent/job/variables.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using Words = std::vector<std::string>;

void append_words(Words& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more.begin(), more.end());
}

class EngineCall {
 public:
  EngineCall(const wire::JobContainer& container, const ContainerEntry& entry)
      : container_(container),
        entry_(entry),
        id_(entry.folder.filename()),
        here_(find_real_path(entry.folder)),
        project_(get_variable("PWD")),
        real_project_(find_real_path(".")) {}

  [[noreturn]] void make() {
    if (!write_record() || !make_python()) {
      fail_job("cannot write the job's folder: is the disk full?");
    }
    find_agent();
    has_gpus_ = exists("/dev/nvidiactl") && !has_option({"--gpus", "--device", "--nv"});
    Words words = container_.engine == "apptainer" ? call_apptainer() : call_docker();
    // The user's own arguments come last: for most options, the last value wins.
    words.insert(words.end(), container_.args.begin(), container_.args.end());
    append_words(words,
                 {container_.image, agent_, "exec-job", "inside", here_, entry_.files.out, entry_.files.err,
                  entry_.files.note, entry_.files.variables, get_variable("HOME"), read_mask(), project_});
    // The client starts helper processes that serve all containers of this user and do not belong to the job.
    ::unsetenv("REMOTE_JOB_ID");
    ::execvp(words[0].c_str(), pointers_to(words).data());
    fail_job("cannot run " + words[0] + ": it is not on the PATH of the job");
  }

 private:
  bool has_option(std::initializer_list<std::string_view> names) const {
    return std::ranges::any_of(container_.args, [&](const std::string& word) {
      return std::ranges::find(names, std::string_view(word).substr(0, word.find('='))) != names.end();
    });
  }

  // Records how to reach the engine, for later requests about this job. Under Slurm, the start request has
  // already written it.
  bool write_record() const {
    const Path file = entry_.folder / "container";
    const auto info = look_at(file);
    if (info && info->st_size > 0) {
      return true;
    }
    std::string text = "engine " + container_.engine + "\n";
    for (const char* name : {"PATH", "HOME", "XDG_RUNTIME_DIR", "TMPDIR", "DOCKER_HOST", "DOCKER_CONTEXT",
                             "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "CONTAINER_HOST",
                             "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"}) {
      const std::string value = get_variable(name);
      text += value.empty() ? "" : text::format("{} {}\n", name, value);
    }
    return put_file(file, text);
  }

  // Many images only have python3. The file is created here, outside the container, because inside the
  // container the user may be another one, whose files this user could not remove.
  bool make_python() const {
    const Path bin = entry_.folder / "bin";
    ::mkdir(bin.c_str(), 0777);
    return exists(bin / "python") || (put_file(bin / "python", "#!/bin/sh\nexec python3 \"$@\"\n") &&
                                      ::chmod((bin / "python").c_str(), 0755) == 0);
  }

  // Files in a folder that is mounted noexec cannot be executed in the container either.
  void find_agent() {
    agent_ = entry_.program + "/remote-agent";
    struct statvfs info {};
    if (::statvfs(agent_.c_str(), &info) == 0 && (info.f_flag & ST_NOEXEC) != 0) {
      agent_ = read_link("/proc/self/exe");
      if (!exists(agent_)) {
        fail_job("cannot run programs in the container: the folder of jobs is mounted noexec");
      }
    }
  }

  static std::string read_mask() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return text::format("{}{}{}", mask >> 6U, mask >> 3U & 7U, mask & 7U);
  }

  // Mounts a path at the same place. Commas separate the parts of --mount, colons those of -v and --bind.
  void mount(Words& words, const std::string& path) const {
    const bool has_comma = path.find(',') != std::string::npos;
    const bool has_colon = path.find(':') != std::string::npos;
    const bool is_apptainer = container_.engine == "apptainer";
    if (has_comma && (has_colon || is_apptainer)) {
      fail_job("a container cannot be given a folder with this name: " + path);
    }
    if (is_apptainer) {
      if (has_colon) {
        fail_job("a container cannot be given a folder with this name: " + path);
      }
      append_words(words, {"--bind", path + ":" + path});
    } else if (has_comma) {
      append_words(words, {"-v", path + ":" + path});
    } else {
      append_words(words, {"--mount", "type=bind,source=" + path + ",target=" + path});
    }
  }

  void mount_all(Words& words) const {
    Words lines = split(read_job_file(entry_.folder / "init_file").value_or(""), '\n');
    const std::string shared = lines.size() > 1 ? lines[1] : "";
    const auto is_new = [&](const std::string& path) { return !path.starts_with(real_project_ + "/"); };
    if (!shared.empty() && is_new(shared) && !shared.starts_with(project_ + "/")) {
      mount(words, shared);
    }
    if (is_new(entry_.program)) {
      mount(words, entry_.program);
    }
    if (!agent_.starts_with(entry_.program + "/")) {
      mount(words, agent_);
    }
    if (is_new(here_)) {
      mount(words, here_);
    }
    if (real_project_ != project_) {
      mount(words, real_project_);
    }
    mount(words, project_);
  }

  Words call_apptainer() const {
    std::string engine = container_.engine;
    if (!is_on_path("apptainer")) {
      engine = "singularity";
    }
    const Host host = Host::of_this_process();
    // Under Slurm, the start request could not check the node.
    if (!is_on_path(engine.c_str())) {
      fail_job(
          text::format("there is no apptainer on {}: install it there, or let `prologue` in configs.yaml "
                       "load it",
                       read_host_name(host)));
    }
    const std::string& image = container_.image;
    if (image.find("://") == std::string::npos && !exists(image)) {
      fail_job(text::format("there is no image {} on {}: put it where this server sees it", image,
                            read_host_name(host)));
    }
    Words words{engine, "exec", "--cleanenv", "--env", "REMOTE_JOB_ID=" + id_, "--pwd", project_};
    if (has_gpus_) {
      words.emplace_back("--nv");
    }
    mount_all(words);
    return words;
  }

  Words call_docker() const {
    const bool is_podman = container_.engine == "podman";
    const bool is_rootless = container_.is_rootless;
    Words words{container_.engine, "run",          "--rm", "--name",         "remote-" + id_, "--pull",
                "never",           "--log-driver", "none", "--security-opt", "label=disable"};
    // The image's own entry point may print something, or run another program.
    append_words(words, {"--entrypoint", "", "--env", "REMOTE_JOB_ID=" + id_, "--workdir", project_});
    if (is_podman && is_rootless) {
      append_words(words, {"--userns", "keep-id"});
    }
    append_words(
        words,
        {"--user", !is_podman && is_rootless ? "0:0" : text::format("{}:{}", ::geteuid(), ::getegid())});
    if (!is_podman && !is_rootless) {
      std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
      if (::getgroups(static_cast<int>(groups.size()), groups.data()) < 0) {
        groups.clear();
      }
      groups.push_back(::getegid());
      for (const gid_t group : groups) {
        append_words(words, {"--group-add", std::to_string(group)});
      }
    }
    // Rootless podman mounts /dev/mqueue for --ipc, and fails without it.
    if (is_podman && is_rootless && !exists("/dev/mqueue")) {
      append_words(words, {"-v", "/dev/shm:/dev/shm"});
    } else {
      append_words(words, {"--ipc", "host"});
    }
    if (!has_option({"--net", "--network"})) {
      append_words(words, {"--network", "host"});
    }
    if (has_gpus_) {
      append_words(words, {is_podman ? "--device" : "--gpus", is_podman ? "nvidia.com/gpu=all" : "all"});
    }
    mount_all(words);
    return words;
  }

  const wire::JobContainer& container_;
  const ContainerEntry& entry_;
  std::string id_;
  std::string here_;
  std::string project_;
  std::string real_project_;
  std::string agent_{};
  bool has_gpus_ = false;
};

}  // namespace

void enter_container(const wire::JobContainer& container, const ContainerEntry& entry) {
  EngineCall(container, entry).make();
}

std::string choose_home(const Path& job_folder, std::string_view mounts) {
  for (const std::string& line : split(mounts, '\n')) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() > 4 && words[4] == "/tmp") {
      const Path home = job_folder / "home";
      if (::mkdir(home.c_str(), 0700) != 0 && !is_folder(home)) {
        fail_job("cannot make " + home.string() + " inside the container");
      }
      return home;
    }
  }
  return "/tmp";
}

bool is_of_slurm(std::string_view name) {
  static constexpr std::array<std::string_view, 13> names{
      "MASTER_ADDR",     "MASTER_PORT",     "RANK",
      "WORLD_SIZE",      "LOCAL_RANK",      "LOCAL_WORLD_SIZE",
      "NODE_RANK",       "GROUP_RANK",      "GROUP_WORLD_SIZE",
      "ROLE_RANK",       "ROLE_WORLD_SIZE", "GPU_DEVICE_ORDINAL",
      "ZE_AFFINITY_MASK"};
  return name.starts_with("SLURM_") || name.starts_with("SLURMD_") || name.ends_with("_SOCKET_IFNAME") ||
         name.ends_with("_VISIBLE_DEVICES") || std::ranges::find(names, name) != names.end();
}

std::string collect_slurm_variables() {
  std::string text;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (is_of_slurm(variable.substr(0, variable.find('=')))) {
      text.append(text.empty() ? 0 : 1, '\0').append(variable);
    }
  }
  return text;
}

}  // namespace remote::agent
