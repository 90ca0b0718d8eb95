#include "agent/authorize/authorize.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/host/users.hpp"
#include "agent/job/job_files.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::seconds lock_patience{10};
constexpr std::size_t max_keys_file = std::size_t{16} << 20U;
constexpr std::string_view blanks = " \t\n\v\f\r";

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

bool is_blank(char c) {
  return blanks.find(c) != std::string_view::npos;
}

// Removes the word and the blanks after it. Returns false if the text starts with another word.
bool skip_word(std::string_view& rest, std::string_view word) {
  if (!rest.starts_with(word) || (rest.size() > word.size() && !is_blank(rest[word.size()]))) {
    return false;
  }
  rest.remove_prefix(word.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
  return true;
}

// Removes the options of a line, which end at the first blank outside quotes.
void skip_options(std::string_view& rest) {
  bool is_quoted = false;
  std::size_t end = 0;
  for (; end < rest.size() && (is_quoted || !is_blank(rest[end])); ++end) {
    if (rest.substr(end).starts_with("\\\"")) {
      ++end;
    } else if (rest[end] == '"') {
      is_quoted = !is_quoted;
    }
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(blanks, end), rest.size()));
}

wire::KeyState find_in_line(std::string_view line, const wire::AuthorizeRequest& request) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  if (line.starts_with('#')) {
    return wire::KeyState::added;
  }
  const bool has_options = !skip_word(line, request.type);
  if (has_options) {
    skip_options(line);
    if (!skip_word(line, request.type)) {
      return wire::KeyState::added;
    }
  }
  if (!skip_word(line, request.key)) {
    return wire::KeyState::added;
  }
  return has_options ? wire::KeyState::restricted : wire::KeyState::present;
}

// Describes the last system call's error, and names the owner of the path if that is another user.
std::string explain_error(const Host& host, const Path& path) {
  std::string reason = ::strerror(errno);
  if (const auto info = look_at(path); info && info->st_uid != ::geteuid()) {
    reason += text::format(" (it belongs to {})", UserNames(host).find(info->st_uid));
  }
  return reason;
}

// Opens a file or folder. Refuses links owned by other users, who may be able to write to the parent folder.
Descriptor open_unless_planted(int folder, const Path& path, int flags) {
  const Descriptor entry(::openat(folder, path.filename().c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  std::string name = path.filename();
  if (entry && ::fstat(entry.get(), &info) == 0 && S_ISLNK(info.st_mode)) {
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      throw Failure(path.string() + " is another user's link");
    }
    std::array<char, 4096> target{};
    const ssize_t size = ::readlinkat(entry.get(), "", target.data(), target.size());
    name = std::string(target.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  } else {
    flags |= O_NOFOLLOW;
  }
  return Descriptor(::openat(folder, name.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
}

Descriptor open_ssh_folder(const Host& host, const Path& path) {
  const Descriptor home(::open(host.home.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ::mkdirat(home.get(), ".ssh", 0700);
  Descriptor folder = open_unless_planted(home.get(), path, O_RDONLY | O_DIRECTORY);
  if (!folder) {
    throw Failure(text::format("cannot make {}: {}", path.string(), explain_error(host, path)));
  }
  if (::fchmod(folder.get(), 0700) != 0) {
    throw Failure(
        text::format("cannot set the permissions of {}: {}", path.string(), explain_error(host, path)));
  }
  return folder;
}

Descriptor open_keys(const Host& host, int folder, const Path& path) {
  if (exists(path) && !is_file(path)) {
    throw Failure(path.string() + " is not a file");
  }
  Descriptor file = open_unless_planted(folder, path, O_WRONLY | O_APPEND | O_CREAT);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw Failure(text::format("cannot write {}: {}", path.string(), explain_error(host, path)));
  }
  // Servers may share a home directory, so another client may be adding a key right now.
  lock_file(file.get(), lock_patience);
  if (::fchmod(file.get(), 0600) != 0) {
    throw Failure(
        text::format("cannot set the permissions of {}: {}", path.string(), explain_error(host, path)));
  }
  return file;
}

std::string read_keys(const Path& path) {
  std::string text = read_file(path, max_keys_file + 1).value_or("");
  if (text.size() > max_keys_file) {
    throw Failure(text::format("{} has more than {} MB", path.string(), max_keys_file >> 20U));
  }
  return text;
}

void append_key(int file, const Path& path, const std::string& before,
                const wire::AuthorizeRequest& request) {
  std::string line = request.type + " " + request.key;
  line += (request.comment.empty() ? "" : " ") + request.comment + "\n";
  if (!before.empty() && before.back() != '\n') {
    line.insert(0, 1, '\n');
  }
  // Some file systems report a full disk only in fsync().
  if (!write_whole(file, line) || (::fsync(file) != 0 && errno != EINVAL)) {
    throw Failure(text::format("cannot write {}: is the disk full?", path.string()));
  }
  if (find_key(read_keys(path), request) == wire::KeyState::added) {
    throw Failure(
        text::format("the key was written to {} but is not there: is the disk full?", path.string()));
  }
}

// SELinux forbids sshd to read files without the right label.
void restore_labels(const Host& host, const Path& folder) {
  try {
    run(host, {.argv = {"restorecon", "-R", folder.string()}});
  } catch (const CannotStart&) {  // the next login shows whether it was needed
  }
}

wire::AuthorizeReply add_key(const Host& host, const wire::AuthorizeRequest& request) {
  const Path folder = host.home / ".ssh";
  const Path path = folder / "authorized_keys";
  const Descriptor opened = open_ssh_folder(host, folder);
  const Descriptor file = open_keys(host, opened.get(), path);
  const std::string before = read_keys(path);
  wire::AuthorizeReply reply{.state = find_key(before, request)};
  if (reply.state == wire::KeyState::added) {
    append_key(file.get(), path, before, request);
    restore_labels(host, folder);
  }
  if (const auto info = look_at(host.home); info && (info->st_mode & 022) != 0) {
    reply.open_folder = wire::to_line(host.home.string(), 4096);
  }
  return reply;
}

}  // namespace

wire::KeyState find_key(std::string_view text, const wire::AuthorizeRequest& request) {
  wire::KeyState found = wire::KeyState::added;
  while (!text.empty() && found != wire::KeyState::present) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const wire::KeyState state = find_in_line(line, request);
    found = state == wire::KeyState::added ? found : state;
  }
  return found;
}

wire::AuthorizeReply authorize_key(const Host& host, const wire::AuthorizeRequest& request) {
  try {
    return add_key(host, request);
  } catch (const Failure& failure) {
    return {.state = wire::KeyState::failed, .problem = wire::to_line(failure.what(), 6000)};
  }
}

}  // namespace remote::agent
