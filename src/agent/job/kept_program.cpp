#include "agent/job/kept_program.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/project.hpp"
#include "agent/host/files.hpp"
#include "agent/host/remove.hpp"
#include "agent/host/run.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/own_folder.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr const char* kept_agent_name = "remote-agent";
constexpr std::size_t max_agent = std::size_t{64} << 20U;
constexpr std::size_t longest_spec_head = 4096;
constexpr std::chrono::hours unused_after{24 * 30};
constexpr mode_t writable_for_others = S_IWGRP | S_IWOTH;

// Unpacks the file `archive` in the folder $1. With -o, tar does not restore owners, even as root.
constexpr std::string_view unpack_script =
    "umask 077 && cd \"$1\" && gzip -dc <archive >tree.tar && tar -xof tree.tar && rm archive tree.tar && "
    "chmod -R u=rwX,go= .";

bool is_owned(const struct stat& info) {
  return info.st_uid == ::geteuid();
}

bool is_closed(const struct stat& info) {
  return is_owned(info) && (info.st_mode & writable_for_others) == 0;
}

// Returns the size of a file that only this user can write to; 0 for anything else.
std::uint64_t find_closed_size(const Path& path) {
  const auto info = look_at_entry(path);
  return info && S_ISREG(info->st_mode) && is_closed(*info) ? static_cast<std::uint64_t>(info->st_size) : 0;
}

std::runtime_error cannot_write(const Path& folder) {
  return std::runtime_error(explain_cannot_write(folder));
}

}  // namespace

KeptProgram::KeptProgram(const Host& host, JobsFolder folder, wire::ServerProgram program)
    : host_(host),
      folder_(std::move(folder)),
      program_(std::move(program)),
      bin_(folder_.jobs / ".bin"),
      path_(bin_ / program_.digest) {
  if (program_.digest.empty()) {
    throw std::runtime_error("the digest of the program is missing");
  }
  if (!make_folders(folder_.project, 0755)) {
    throw std::runtime_error("cannot make the folder " + folder_.project.string());
  }
  make_own_folder(folder_.jobs, ".bin");
}

bool KeptProgram::is_complete() const {
  const auto jobs = look_at(folder_.jobs);
  if (!jobs || !is_closed(*jobs) || !is_closed_folder(bin_) || !is_closed_folder(path_)) {
    return false;
  }
  if (program_.size == 0) {
    return true;
  }
  std::uint64_t size = 0;
  for (const std::string& name : list_names(path_)) {
    if (is_closed_folder(path_ / name)) {
      for (const std::string& file : list_names(path_ / name)) {
        size += find_closed_size(path_ / name / file);
      }
    }
  }
  return size == program_.size;
}

void KeptProgram::unpack(const std::string& archive) const {
  const std::string folder = bin_ / (".new." + make_random_name());
  if (::mkdir(folder.c_str(), 0700) != 0) {
    throw cannot_write(folder_.jobs);
  }
  const std::string name = Path(folder).filename();
  const bool is_unpacked = write_job_file(Path(folder) / "archive", archive, O_EXCL) &&
                           run(host_, {.argv = {"sh", "-c", std::string(unpack_script), "sh", folder},
                                       .limit = std::chrono::minutes(2)})
                               .succeeded();
  if (!is_unpacked) {
    remove_folder(bin_, name, "");
    throw cannot_write(folder_.jobs);
  }
  // Several machines with a shared home directory can do this at the same time. An existing entry can belong
  // to another user.
  if (has_entry(path_) && !is_complete()) {
    remove_folder(bin_, program_.digest, "");
    ::unlink(path_.c_str());  // if it is a file or a link
  }
  if (::rename(folder.c_str(), path_.c_str()) != 0) {
    remove_folder(bin_, name, "");
  }
  if (!is_complete()) {
    if (const std::string flaw = find_flaw(bin_); !flaw.empty()) {
      throw std::runtime_error("cannot keep the programs in " + bin_.string() + ": " + flaw);
    }
    throw std::runtime_error("other users may change the programs in " + bin_.string() +
                             ": check their owner and permissions");
  }
  remove_unused();
}

void KeptProgram::add_agent() const {
  const Path copy = path_ / kept_agent_name;
  if (!is_file(copy)) {
    // This path works even if the agent's file was removed or never existed.
    const auto agent = read_file(host_.system("/proc/self/exe"), max_agent);
    if (!agent || agent->empty() || !put_file(copy, *agent) || ::chmod(copy.c_str(), S_IRWXU) != 0) {
      throw cannot_write(path_);
    }
  }
  const Path used = path_ / "used";
  write_job_file(used, "", O_TRUNC);
  ::utimensat(AT_FDCWD, used.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

// Removes copies that no launch has used for a month and that no job refers to.
void KeptProgram::remove_unused() const {
  const auto oldest = std::chrono::seconds(::time(nullptr)) - unused_after;
  for (const std::string& name : list_names(bin_)) {
    const auto used = look_at_entry(bin_ / name / "used");
    if (!used || std::chrono::seconds(used->st_mtime) >= oldest) {
      continue;
    }
    const bool is_needed = std::ranges::any_of(list_names(folder_.jobs), [&](const std::string& id) {
      const auto spec =
          wire::is_id(id) ? read_job_file(folder_.jobs / id / spec_name, longest_spec_head) : std::nullopt;
      return spec && spec->find("\"program\":\"" + name + "\"") != std::string::npos;
    });
    if (!is_needed) {
      remove_folder(bin_, name, "used");
    }
  }
}

Path find_kept_program(const JobsFolder& folder, const std::string& digest) {
  const Path bin = folder.jobs / ".bin";
  const Path program = bin / digest;
  const bool is_safe = !digest.empty() && is_closed_folder(bin) && is_closed_folder(program);
  return is_safe ? program : Path();
}

Path find_kept_agent(const Host& host, const Path& program) {
  const Path copy = program / kept_agent_name;
  if (find_closed_size(copy) == 0) {
    return {};
  }
  const Path own = host.system("/proc/self/exe");
  if (const auto agent = read_file(copy, max_agent); agent && agent == read_file(own, max_agent)) {
    return own;
  }
  return is_program(copy) ? copy : Path();
}

wire::KeepProgramReply keep_program(const Host& client_host, const wire::KeepProgramRequest& request,
                                    const std::string& archive) {
  const Host host = client_host.without_cancel();
  const KeptProgram kept(host, JobsFolder::of(host, request.place), request.program);
  if (!kept.is_complete()) {
    if (archive.empty()) {
      return {.is_missing = true};
    }
    kept.unpack(archive);
  }
  kept.add_agent();
  return {};
}

}  // namespace remote::agent
