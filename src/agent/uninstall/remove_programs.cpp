#include "agent/uninstall/remove_programs.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/host/remove.hpp"
#include "agent/lease/lease_files.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using wire::LeftReason;

constexpr std::size_t longest_shown_path = 4000;
// Another command may still be using a fallback folder that is newer than this.
constexpr std::chrono::minutes recent_age{1};

bool is_owned_folder(const Path& path) {
  const auto info = look_at_entry(path);
  return info && S_ISDIR(info->st_mode) && info->st_uid == ::geteuid();
}

// Whether the name is that of a file or folder created by an installation.
bool is_temporary_name(const std::string& name) {
  const std::string_view ending = std::string_view(name).substr(name.rfind('.') + 1);
  return (name.starts_with(".remote-new.") || name.starts_with(".remote-agent.")) && !ending.empty() &&
         std::ranges::all_of(ending, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

class ProgramRemover {
 public:
  ProgramRemover(const Host& host, const wire::UninstallRequest& request, const KeepReasons& reasons)
      : request_(request),
        reasons_(reasons),
        jobs_(JobsFolder::of(host, request.place).jobs),
        cache_(host.home / ".cache/remote"),
        agent_folder_(request.agent_folder.empty() ? Path() : host.expand(request.agent_folder)),
        shared_(request.shared),
        user_(std::to_string(::geteuid())) {
    if (std::string runtime = host.variable("XDG_RUNTIME_DIR"); !runtime.empty()) {
      shared_.push_back(std::move(runtime));
    }
    if (agent_folder_.string().size() > 1 && agent_folder_.string().ends_with('/')) {
      agent_folder_ = agent_folder_.parent_path();
    }
  }

  wire::UninstallReply run() {
    pass_ = request_.dry_run ? Pass::look : Pass::remove;
    handle_all();
    if (!request_.dry_run) {
      ::rmdir(jobs_.c_str());
      pass_ = Pass::check;
      handle_all();
    }
    return std::move(reply_);
  }

 private:
  enum class Pass { look, remove, check };

  static std::string to_shown(const Path& path) { return wire::to_line(path.string(), longest_shown_path); }
  void add_removed(const Path& path) {
    if (reply_.removed.size() < wire::max_uninstalled) {
      reply_.removed.push_back(to_shown(path));
    }
  }

  // Removes or reports the path. If there is a reason, the path is kept. Returns whether it is kept.
  bool handle(const Path& path, std::optional<LeftReason> reason = std::nullopt) {
    const auto info = look_at_entry(path);
    if (!info) {
      return false;
    }
    if (S_ISLNK(info->st_mode)) {
      reason = LeftReason::link;
    } else if (info->st_uid != ::geteuid()) {
      reason = LeftReason::foreign;
    }
    if (pass_ == Pass::look && !reason) {
      add_removed(path);
    } else if (pass_ != Pass::remove) {
      if (reply_.left.size() < wire::max_uninstalled) {
        reply_.left.push_back({reason.value_or(LeftReason::failed), to_shown(path)});
      }
    } else if (!reason) {
      if (S_ISDIR(info->st_mode)) {
        remove_folder(path.parent_path(), path.filename(), "");
      } else {
        ::unlink(path.c_str());
      }
      if (!has_entry(path)) {
        add_removed(path);
      }
    }
    return reason.has_value();
  }

  // Like handle(), but the folder is removed only if it is empty.
  void handle_empty(const Path& folder) {
    if (pass_ != Pass::remove) {
      handle(folder);
    } else if (::rmdir(folder.c_str()) == 0) {
      add_removed(folder);
    }
  }

  void handle_all() {
    handle_cache();
    handle_agent_folder();
    handle(jobs_ / ".bin", reasons_.programs);
    handle(jobs_ / ".trees", reasons_.trees);
    for (const std::string& folder : shared_) {
      handle_shared(folder);
    }
  }

  void handle_cache() {
    if (!is_owned_folder(cache_)) {
      handle(cache_);
      return;
    }
    bool has_others = false;
    for (const std::string& name : list_names(cache_)) {
      const bool is_ours = wire::is_digest(name) || is_temporary_name(name);
      has_others =
          handle(cache_ / name, is_ours ? std::nullopt : std::optional(LeftReason::unknown)) || has_others;
    }
    if (!has_others) {
      handle_empty(cache_);
    }
  }

  // The folder itself belongs to the user, so only versions of the agent are removed from it.
  void handle_agent_folder() {
    if (agent_folder_.empty() || !is_owned_folder(agent_folder_)) {
      return;
    }
    for (const std::string& name : list_names(agent_folder_)) {
      const Path version = agent_folder_ / name;
      if (!wire::is_digest(name) || !is_owned_folder(version)) {
        continue;
      }
      const std::vector<std::string> files = list_names(version);
      if (std::ranges::any_of(files, [&](const std::string& file) {
            return (file == "remote-agent" || file.starts_with("new.")) && is_file(version / file);
          })) {
        handle(version);
      }
    }
  }

  void handle_shared(const Path& folder) {
    const std::string lease = std::string(lease_prefix) + user_ + ".";
    for (const std::string& name : list_names(folder)) {
      const Path path = folder / name;
      const auto info = look_at_entry(path);
      if (!info || info->st_uid != ::geteuid()) {
        continue;
      }
      if (is_temporary_name(name) && S_ISDIR(info->st_mode)) {
        const bool is_recent = read_wall_clock() - std::chrono::seconds(info->st_mtim.tv_sec) < recent_age;
        handle(path, is_recent ? std::optional(LeftReason::recent) : std::nullopt);
      } else if (name.starts_with(lease) && S_ISREG(info->st_mode) && pass_ != Pass::look) {
        handle(path, LeftReason::lease);
      } else if (name == "remote-" + user_ && S_ISDIR(info->st_mode)) {
        handle_results(path);
      }
    }
  }

  void handle_results(const Path& folder) {
    if (list_names(folder).empty()) {
      handle_empty(folder);
    } else {
      handle(folder, LeftReason::results);
    }
  }

  const wire::UninstallRequest& request_;
  const KeepReasons& reasons_;
  Path jobs_;
  Path cache_;
  Path agent_folder_;
  std::vector<std::string> shared_;
  std::string user_;
  Pass pass_ = Pass::look;
  wire::UninstallReply reply_{};
};

}  // namespace

wire::UninstallReply remove_programs(const Host& host, const wire::UninstallRequest& request,
                                     const KeepReasons& reasons) {
  return ProgramRemover(host, request, reasons).run();
}

}  // namespace remote::agent
