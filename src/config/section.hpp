#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/yaml_reader.hpp"

namespace remote::config {

// A value and where it stands.
template <typename Value>
struct Found {
  Value value;
  Mark mark;
};

// The warnings that come from reading one file. Their number is bounded: a file full of unknown keys is one
// mistake, not a million.
class Warnings {
 public:
  // `strict`: an unknown key is an error.
  explicit Warnings(std::string file, bool strict = false) : file_(std::move(file)), strict_(strict) {}
  void add(Mark mark, const std::string& text);  // "FILE:7:3: text", as errors have it
  bool strict() const { return strict_; }
  bool full() const;
  void leave_out() { ++left_out_; }  // counts one that is not worth its text
  std::vector<std::string> take();

 private:
  std::string file_;
  bool strict_;
  std::vector<std::string> texts_;
  std::size_t left_out_ = 0;
};

// Where a key may stand; the tables of section.cpp go by it.
enum class Level { top, server, python, launch, container, history, notify, checkpoint };
const std::vector<std::string>& known_keys(Level level);

// One map of the file, read key by key with the type that the caller expects. A key that is absent or has no
// value ("password:") is nullopt, as is an empty text: labml_remote's guide says "leave blank". A wrong type
// is an Error with file, line and column.
class Section {
 public:
  // `what` is how messages call it: "server 'first'". Warns about keys that the level does not know. A null
  // node is an empty section; anything but a map is an Error.
  Section(const YamlNode& node, Level level, std::string what, const std::string& file, Warnings& warnings);

  std::optional<Found<std::string>> text(const std::string& key) const;
  // A text that passes a check of config/validate.hpp; an Error with what the check says otherwise.
  std::optional<std::string> checked(const std::string& key,
                                     std::optional<std::string> (*problem_of)(const std::string&)) const;
  // The Error for a text that cannot be this key's value.
  Error unfit(const std::string& key, const Found<std::string>& found, const std::string& problem) const;
  std::optional<int> number(const std::string& key, int low, int high) const;
  std::optional<bool> boolean(const std::string& key) const;
  // A list of texts; one text alone is a list of one.
  std::vector<Found<std::string>> texts(const std::string& key) const;
  // A map of variables, which every sh can set.
  std::vector<std::pair<std::string, std::string>> variables(const std::string& key) const;
  // The node of a key that is there and not null.
  const YamlNode* node(const std::string& key) const;

  Mark mark() const { return map_->mark; }
  // The entry of an unknown key that stands for this one ("host" for "hostname"); nullptr: there is none.
  const YamlNode::Entry* misnamed(const std::string& key) const;
  const std::vector<YamlNode::Entry>& entries() const { return map_->entries; }
  Error error(Mark mark, const std::string& reason, const std::string& hint = {}) const {
    return config_error(file_, mark, reason, hint);
  }

 private:
  void warn_of_unknown_keys(Level level, Warnings& warnings) const;
  [[noreturn]] void wrong_type(const std::string& key, const YamlNode& found,
                               const std::string& wanted) const;

  const YamlNode* map_;
  std::string what_;
  const std::string& file_;
};

// Parts of configs.yaml. They throw Error with file, line and column.
Server read_server(const YamlNode::Entry& entry, const Config& config, const std::string& file,
                   Warnings& warnings);
// `scheduler` of a server and the keys that go with it; nullopt: it has none.
std::optional<Slurm> read_slurm(const Section& section);
// `connection` of all servers, or of one.
std::optional<ConnectBy> read_connect_by(const Section& section);
// What is wrong with an option of sbatch: "--mem=32G".
std::optional<std::string> sbatch_problem(const std::string& option);
// `prologue` of all servers, or of one: a text, or a list of lines.
std::optional<std::string> read_prologue(const Section& section);
Python read_python(const YamlNode& node, const std::string& file, Warnings& warnings);
// `container` of all servers, or of one, where `base` is that of all.
std::optional<Container> read_container(const Section& section, const std::optional<Container>& base,
                                        const std::string& file, Warnings& warnings);
// `what`: "'launch'", for messages.
LaunchDefaults read_launch(const YamlNode& node, const std::string& what, const std::vector<Server>& servers,
                           const std::string& file, Warnings& warnings);
// Checks `launches`, where an unknown key is an Error.
std::vector<YamlNode::Entry> read_launches(const YamlNode& node, const std::vector<Server>& servers,
                                           const std::string& file);
// `notify`, `outputs`, `checkpoint` and `spares`.
void read_ends_of_launches(const Section& top, Config& config, const std::string& file, Warnings& warnings);

}  // namespace remote::config
