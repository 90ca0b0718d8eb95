#include "agent/host/matches.hpp"

#include <span>
#include <utility>

#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_visited_names = 1'000'000;

class MatchSearch {
 public:
  MatchSearch(const Path& root, std::size_t most) : root_(root), most_(most) {}

  // Matches the names in a folder against the first pattern, and the names in matching folders against the
  // others.
  void visit(const std::string& folder, std::span<const std::string> patterns) {
    const std::string& pattern = patterns.front();
    if (pattern.find_first_of("*?[") == std::string::npos) {
      visit_match(folder + pattern, patterns.subspan(1));
      return;
    }
    for (const std::string& name : list_names(root_ / folder)) {
      if (++visited_ > most_visited_names || found_.size() == most_) {
        return;
      }
      const bool is_hidden = name.starts_with('.') && !pattern.starts_with('.');
      if (!is_hidden && glob_match(pattern, name)) {
        visit_match(folder + name, patterns.subspan(1));
      }
    }
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  void visit_match(const std::string& path, std::span<const std::string> patterns) {
    if (!patterns.empty()) {
      visit(path + "/", patterns);
    } else if (has_entry(root_ / path) && found_.size() < most_) {
      found_.push_back(path);
    }
  }

  const Path& root_;
  std::size_t most_;
  std::size_t visited_ = 0;
  std::vector<std::string> found_{};
};

}  // namespace

std::vector<std::string> find_matches(const Path& folder, const std::string& pattern, std::size_t most) {
  MatchSearch search(folder, most);
  search.visit("", split(pattern, '/'));
  return search.take();
}

}  // namespace remote::agent
