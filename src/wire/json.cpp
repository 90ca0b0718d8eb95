#include "wire/json.hpp"

#include <bit>

#include "wire/read.hpp"
#include "wire/write.hpp"

namespace remote::wire {
namespace {

class JsonWriter : public Writer {  // NOLINT(bugprone-exception-escape): its constructor cannot throw
 public:
  void write_null() override { put(nullptr); }
  void write_bool(bool value) override { put(value); }
  void write_integer(std::int64_t value) override { put(value); }
  void write_unsigned(std::uint64_t value) override { put(value); }
  void write_real(double value) override { put(value); }
  void write_string(std::string_view value) override { put(std::string(value)); }
  void begin_list(std::size_t /*count*/) override { open_.push_back(put(Json::array())); }
  void begin_object(std::size_t /*count*/) override { open_.push_back(put(Json::object())); }
  void write_key(std::string_view key) override { key_ = key; }
  void end() override { open_.pop_back(); }

  Json& value() { return root_; }

 private:
  Json* put(Json value) {
    Json* place = &root_;
    if (!open_.empty()) {
      Json& parent = *open_.back();
      place = parent.is_object() ? &parent[key_] : &parent.emplace_back();
    }
    *place = std::move(value);
    return place;
  }

  Json root_;
  // The open containers, the innermost last. A container gets no sibling while it is open, so these pointers
  // stay valid.
  std::vector<Json*> open_;
  std::string key_;
};

// Recurses for nested values, at most to the depth allowed in CBOR.
Value to_value(const Json& json, std::size_t depth) {
  if (depth > max_depth) {
    throw Malformed("", "is nested too deeply");
  }
  Value value;
  if (json.is_boolean()) {
    value.kind = Value::Kind::boolean;
    value.boolean = json.get<bool>();
  } else if (json.is_number_unsigned()) {
    value.kind = Value::Kind::unsigned_integer;
    value.number = json.get<std::uint64_t>();
  } else if (json.is_number_integer()) {
    value.kind = Value::Kind::integer;
    value.number = static_cast<std::uint64_t>(json.get<std::int64_t>());
  } else if (json.is_number()) {
    value.kind = Value::Kind::real;
    value.number = std::bit_cast<std::uint64_t>(json.get<double>());
  } else if (json.is_string()) {
    value.kind = Value::Kind::string;
    value.string = json.get_ref<const std::string&>();
  } else if (json.is_array()) {
    value.kind = Value::Kind::list;
    for (const Json& each : json) {
      value.values.push_back(to_value(each, depth + 1));
    }
  } else if (json.is_object()) {
    value.kind = Value::Kind::object;
    for (const auto& [name, each] : json.get_ref<const Json::object_t&>()) {
      value.values.push_back(to_value(each, depth + 1));
      value.values.back().name = name;
    }
  }
  return value;
}

}  // namespace

Json to_json(const Type& type, const void* value) {
  JsonWriter writer;
  write(type, value, writer);
  return std::move(writer.value());
}

void read_json(const Json& json, const Type& type, void* value, const Limits& limits,
               const std::string& path) {
  read(to_value(json, 0), type, value, limits, path);
}

}  // namespace remote::wire
