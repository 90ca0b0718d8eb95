#include "agent/tree/make_tree.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/hash_file.hpp"
#include "agent/job/own_folder.hpp"
#include "agent/tree/files.hpp"
#include "agent/tree/land_files.hpp"
#include "agent/tree/tree_store.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using wire::TreeOutcome;

constexpr std::size_t most_shown = 20;
constexpr std::int64_t large_size = std::int64_t{1} << 20U;

// Whether programs do not modify such files in place, so that a tree can share them with the project. rsync
// never modifies them either, because it replaces files by rename.
bool is_linked(const TreeFile& file) {
  constexpr std::string_view sources =
      " py pyi pyx pxd sh bash c cc cpp cxx h hh hpp cu cuh so proto rs go jl lua ";
  const std::string ending = file.name.substr(file.name.rfind('.') + 1);
  return file.size >= large_size ||
         (file.name.find('.') != std::string::npos && ending.find(' ') == std::string::npos &&
          sources.find(" " + ending + " ") != std::string_view::npos);
}

class TreeMaker {
 public:
  TreeMaker(const TreeStore& store, std::string digest)
      : store_(store), digest_(std::move(digest)), final_(store.path(digest_)) {}

  wire::MakeTreeReply make(const std::string& sent) {
    const std::string kept = store_.read_list(digest_);
    const std::string& text = trim(sent).empty() ? kept : sent;
    if (text.empty()) {
      return {.outcome = TreeOutcome::unknown};
    }
    if (text != kept && hash_text(text) != digest_) {
      throw std::runtime_error("the list of files arrived damaged");
    }
    const TreeList list = parse_tree_list(text);
    store_.land_all(digest_);
    store_.drop_all(digest_);
    if (exists(store_.path(digest_, ".open"))) {
      if (const std::string reason = store_.land(digest_, true); !reason.empty()) {
        throw std::runtime_error("files of an earlier launch cannot be moved to the project: " + reason);
      }
    }
    is_there_ = is_folder(final_);
    tree_ = is_there_ ? final_ : store_.new_path(digest_);
    make_tree_folders(list);
    wire::MakeTreeReply reply = put_files(list);
    if (reply.outcome == TreeOutcome::ready) {
      finish(list, text == kept ? "" : text);
    }
    return reply;
  }

 private:
  void make_tree_folders(const TreeList& list) {
    for (const std::string& folder : list.folders) {
      const Path path = folder.empty() ? tree_ : tree_ / folder;
      if (!make_folders(path, 0700)) {
        fail_at(path);
      }
      if (!is_in_place(path)) {
        throw std::runtime_error("a launch that runs has put something else in place of the folder " +
                                 folder);
      }
    }
  }

  wire::MakeTreeReply put_files(const TreeList& list) {
    wire::MakeTreeReply reply;
    // A running launch keeps the files that it has changed.
    const bool is_shared = is_there_ && store_.is_in_use(digest_);
    for (const TreeFile& file : list.files) {
      const Path path = tree_ / file.name;
      const bool is_whole = is_there_ && (is_as_sent(path, file) || (is_shared && has_entry(path)));
      if (is_whole || put_file_of(file, path)) {
        continue;
      }
      reply.outcome = TreeOutcome::differs;
      if (reply.differing.size() < most_shown) {
        reply.differing.push_back(wire::to_line(file.name, 500));
      } else {
        ++reply.more;
      }
    }
    return reply;
  }

  // Returns whether the project has the file as it was sent.
  bool put_file_of(const TreeFile& file, const Path& path) {
    const Path source = store_.project() / file.name;
    remove_file(path);
    const bool is_made = share_file(source, path) || (is_linked(file) && link_file(source, path)) ||
                         copy_file(source, path, false) == CopyOutcome::copied;
    // Check afterwards, because a sync may be replacing the file.
    if (is_made && is_as_sent(path, file)) {
      return true;
    }
    remove_file(path);
    return false;
  }

  bool share_file(const Path& source, const Path& path) {
    const CopyOutcome outcome = can_share_ ? copy_file(source, path, true) : CopyOutcome::not_supported;
    can_share_ = can_share_ && outcome != CopyOutcome::not_supported;
    return outcome == CopyOutcome::copied;
  }

  // Fails if there are too many links, the file system does not support them, or the file belongs to another
  // user.
  static bool link_file(const Path& source, const Path& path) {
    if (::link(source.c_str(), path.c_str()) == 0) {
      return true;
    }
    if (errno == ENOSPC || errno == EDQUOT) {
      fail_at(path);
    }
    return false;
  }

  void finish(const TreeList& list, const std::string& new_list) {
    link_others(list);
    if (!make_folders(store_.path(digest_, ".jobs"), 0700)) {
      fail_at(store_.path(digest_, ".jobs"));
    }
    if (!new_list.empty()) {
      write_beside(".list", new_list);
    }
    write_beside(".starting", "");
    write_beside(".open", "");
    if (!is_there_ && ::rename(tree_.c_str(), final_.c_str()) != 0) {
      fail_at(final_);
    }
    store_.land_all(digest_);  // jobs that have ended meanwhile did not wait for the lock
  }

  // Creates links to everything in the project that was not sent: environments, data, files of earlier
  // launches.
  void link_others(const TreeList& list) {
    for (const std::string& folder : list.folders) {
      const Path place = folder.empty() ? tree_ : tree_ / folder;
      const Path home = folder.empty() ? store_.project() : store_.project() / folder;
      const std::string up = make_relative(home, place);
      for (const std::string& name : list_all_names(place)) {
        const Path path = place / name;
        if (read_link(path) == up + "/" + name && !exists(path)) {
          remove_file(path);  // it would prevent programs from creating the file
        }
      }
      for (const std::string& name : list_all_names(home)) {
        if (!is_skipped_name(name) && home / name != store_.jobs() && !has_entry(place / name)) {
          make_link(up + "/" + name, place / name);
        }
      }
    }
  }

  void write_beside(const char* suffix, const std::string& text) const {
    const Path path = store_.path(digest_, suffix);
    if (!put_file(path, text)) {
      fail_at(path);
    }
  }

  const TreeStore& store_;
  std::string digest_;
  Path final_;
  Path tree_{};
  bool is_there_ = false;
  bool can_share_ = true;
};

}  // namespace

wire::MakeTreeReply make_tree(const Host& host, const wire::MakeTreeRequest& request,
                              const std::string& list) {
  const JobsFolder folder = JobsFolder::of(host, request.place);
  if (!is_folder(folder.project)) {
    return {.outcome = TreeOutcome::unknown};
  }
  try {
    if (!wire::is_digest(request.digest)) {
      throw std::runtime_error("the digest of the tree is wrong");
    }
    make_own_folder(folder.jobs, ".trees");
    TreeStore store(host, folder);
    if (!store.lock(host, true)) {
      fail_at(store.folder());
    }
    try {
      wire::MakeTreeReply reply = TreeMaker(store, request.digest).make(list);
      if (reply.outcome != TreeOutcome::ready) {
        store.drop_new();
      }
      return reply;
    } catch (const std::exception&) {
      store.drop_new();
      throw;
    }
  } catch (const std::exception& error) {
    return {.outcome = TreeOutcome::failed, .reason = wire::to_line(error.what(), 1000)};
  }
}

}  // namespace remote::agent
