#include "gui/model/dot.h"

#include <QFileInfo>
#include <QRegularExpression>

#include "core/base/error.h"
#include "core/base/file.h"

#ifdef STITCHWORK_CGRAPH
#include <graphviz/cgraph.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <regex>
#endif

namespace stitchwork::gui {

bool is_dot_path(const QString& file) { return file.endsWith(".dot") || file.endsWith(".gv"); }

#ifndef STITCHWORK_CGRAPH

PlannedPtr read_dot(const QString& file) {
  throw Error(file.toStdString(), 0, 0, "this build reads no DOT: it was made without Graphviz",
              "install libgraphviz-dev and configure again");
}

#else

namespace {

/// Graphviz has one parser and one place for errors a process.
std::mutex reading;
std::string said;

int take_error(char* text) {
  said += text;
  return 0;
}

/// "Error: <memory>: syntax error in line 3 near '->'" as an Error of the file.
[[noreturn]] void refuse(const std::string& file) {
  static const std::regex where(R"((syntax error) in line (\d+)( near '[^\n]*'?)?)");
  std::smatch match;
  if (std::regex_search(said, match, where))
    throw Error(file, std::stoi(match[2]), 0, match[1].str() + match[3].str(),
                "DOT is described at graphviz.org/doc/info/lang.html");
  const std::string first = said.substr(0, said.find('\n'));
  throw Error(file, 0, 0, first.empty() ? "no graph is in it" : first, "a file begins with graph or digraph");
}

struct Closed {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};

class Reader {
 public:
  explicit Reader(Agraph_t* graph) : graph_(graph) {}

  /// The tree, and the looks of its nodes.
  std::pair<FoldTree, std::vector<NodeLook> > read() {
    for (Agnode_t* node = agfstnode(graph_); node != nullptr; node = agnxtnode(graph_, node)) {
      index_[node] = static_cast<int>(nodes_.size());
      nodes_.push_back(node);
    }
    order();
    holder_.assign(nodes_.size(), nullptr);
    hold(graph_);
    looks_.emplace_back();
    tree_.nodes.push_back({FoldKind::kModel, -1, {}, text(agnameof(graph_))});
    place_.assign(nodes_.size(), -1);
    fill(graph_, 0);
    for (Agnode_t* node : nodes_)
      for (Agedge_t* edge = agfstout(graph_, node); edge != nullptr; edge = agnxtout(graph_, edge)) {
        const int from = place_[at(agtail(edge))], to = place_[at(aghead(edge))];
        if (from != to) tree_.edges.push_back({from, to, kNoNode, 0, false});
      }
    std::ranges::sort(tree_.edges, {}, [](const FoldEdge& e) { return std::pair(e.from, e.to); });
    const auto repeated = std::ranges::unique(
        tree_.edges, [](const FoldEdge& a, const FoldEdge& b) { return a.from == b.from && a.to == b.to; });
    tree_.edges.erase(repeated.begin(), repeated.end());
    for (std::size_t i = tree_.nodes.size(); i-- > 1;) {
      FoldNode& node = tree_.nodes[i];
      tree_.nodes[static_cast<std::size_t>(node.parent)].ops += node.ops;
    }
    return {std::move(tree_), std::move(looks_)};
  }

 private:
  std::size_t at(Agnode_t* node) const { return static_cast<std::size_t>(index_.at(node)); }

  /// Every node after those with an edge to it, else as the file has them; a cycle is cut where the file
  /// begins it.
  void order() {
    const std::size_t count = nodes_.size();
    std::vector<int> waits(count);
    std::vector<std::vector<int> > next(count);
    for (std::size_t i = 0; i < count; ++i)
      for (Agedge_t* edge = agfstout(graph_, nodes_[i]); edge != nullptr; edge = agnxtout(graph_, edge)) {
        const std::size_t to = at(aghead(edge));
        if (to == i) continue;
        next[i].push_back(static_cast<int>(to));
        ++waits[to];
      }
    rank_.assign(count, -1);
    std::priority_queue<int, std::vector<int>, std::greater<> > ready;
    for (std::size_t i = 0; i < count; ++i)
      if (waits[i] == 0) ready.push(static_cast<int>(i));
    std::size_t first_left = 0;
    for (int done = 0; done < static_cast<int>(count);) {
      if (ready.empty()) {
        while (rank_[first_left] >= 0) ++first_left;
        ready.push(static_cast<int>(first_left));
      }
      const auto now = static_cast<std::size_t>(ready.top());
      ready.pop();
      if (rank_[now] >= 0) continue;
      rank_[now] = done++;
      for (const int to : next[now])
        if (--waits[static_cast<std::size_t>(to)] == 0) ready.push(to);
    }
  }

  static bool is_cluster(Agraph_t* graph) { return std::string_view(agnameof(graph)).starts_with("cluster"); }

  /// The innermost cluster of every node, and the clusters in each.
  void hold(Agraph_t* outer) {
    const auto walk = [&](const auto& self, Agraph_t* graph) -> void {
      for (Agraph_t* sub = agfstsubg(graph); sub != nullptr; sub = agnxtsubg(sub)) {
        if (!is_cluster(sub)) {
          self(self, sub);
          continue;
        }
        inner_[outer].push_back(sub);
        for (Agnode_t* node = agfstnode(sub); node != nullptr; node = agnxtnode(sub, node))
          holder_[at(node)] = sub;
        hold(sub);
      }
    };
    walk(walk, outer);
  }

  int first_rank(Agraph_t* cluster) {
    int first = static_cast<int>(nodes_.size());
    for (Agnode_t* node = agfstnode(cluster); node != nullptr; node = agnxtnode(cluster, node))
      first = std::min(first, rank_[at(node)]);
    return first;
  }

  void fill(Agraph_t* graph, int parent) {
    struct Child {
      int rank;
      Agraph_t* cluster;
      std::size_t node;
    };
    std::vector<Child> children;
    for (Agraph_t* cluster : inner_[graph])
      if (agfstnode(cluster) != nullptr) children.push_back({first_rank(cluster), cluster, 0});
    Agraph_t* const here = graph == graph_ ? nullptr : graph;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (holder_[i] == here) children.push_back({rank_[i], nullptr, i});
    std::ranges::stable_sort(children, {}, &Child::rank);
    for (const Child& child : children) {
      const int place = static_cast<int>(tree_.nodes.size());
      FoldNode node;
      node.parent = parent;
      node.depth = tree_.nodes[static_cast<std::size_t>(parent)].depth + 1;
      looks_.push_back(child.cluster != nullptr ? look(child.cluster, true)
                                                : look(nodes_[child.node], false));
      if (child.cluster != nullptr) {
        node.kind = FoldKind::kLayer;
        node.label = label(child.cluster, agnameof(child.cluster));
      } else {
        node.kind = FoldKind::kOp;
        node.ops = 1;
        node.label = label(nodes_[child.node], agnameof(nodes_[child.node]));
        place_[child.node] = place;
      }
      tree_.nodes.push_back(std::move(node));
      tree_.nodes[static_cast<std::size_t>(parent)].children.push_back(place);
      if (child.cluster != nullptr) fill(child.cluster, place);
    }
  }

  static QString attribute(void* object, const char* name) {
    std::string word(name);
    const char* given = agget(object, word.data());
    return given == nullptr ? QString() : QString::fromUtf8(given);
  }

  /// "#rrggbb[aa]", "hue,saturation,value" or a name, the first of a list; invalid: none of these.
  static QColor colour(QString given) {
    given = given.section(':', 0, 0).section(';', 0, 0).trimmed();
    static const QRegularExpression hsv("^([0-9.]+)[, ]+([0-9.]+)[, ]+([0-9.]+)$");
    if (const auto match = hsv.match(given); match.hasMatch()) {
      const auto part = [&](int i) { return std::clamp(match.captured(i).toDouble(), 0.0, 1.0); };
      return QColor::fromHsvF(static_cast<float>(part(1)), static_cast<float>(part(2)),
                              static_cast<float>(part(3)));
    }
    if (given.startsWith('#') && given.size() == 9) given.chop(2);  // Qt has the opacity first
    return given.isEmpty() || given == "transparent" || given == "none" ? QColor() : QColor(given);
  }

  /// As Graphviz reads it: what is filled takes fillcolor, else color; a cluster's bgcolor fills it too.
  static NodeLook look(void* object, bool cluster) {
    NodeLook look;
    const QString style = attribute(object, "style");
    look.line = colour(attribute(object, cluster ? "pencolor" : "color"));
    if (!look.line.isValid()) look.line = colour(attribute(object, "color"));
    look.text = colour(attribute(object, "fontcolor"));
    look.dashed = style.contains("dashed") || style.contains("dotted");
    if (style.contains("filled")) {
      look.fill = colour(attribute(object, "fillcolor"));
      if (!look.fill.isValid()) look.fill = colour(attribute(object, "color"));
    } else if (cluster) {
      look.fill = colour(attribute(object, "bgcolor"));
    }
    return look;
  }

  static std::string text(const char* name) { return name == nullptr ? "" : name; }

  /// In one line, without escapes, fields of records and markup.
  static std::string label(void* object, const char* name) {
    char word[] = "label";
    char* given = agget(object, word);
    if (given == nullptr || *given == '\0') return text(name);
    std::string line;
    const bool markup = aghtmlstr(given) != 0;
    for (const char* c = given; *c != '\0'; ++c) {
      if (markup && *c == '<') {
        while (*c != '\0' && *c != '>') ++c;
        if (*c == '\0') break;
        line += ' ';
      } else if (*c == '\\' && c[1] != '\0') {
        ++c;
        if (*c == 'N' || *c == 'G')
          line += text(name);
        else
          line += *c == 'n' || *c == 'l' || *c == 'r' ? ' ' : *c;
      } else {
        line += *c == '\n' || *c == '\t' ? ' ' : *c;
      }
    }
    static const std::regex spaces(" +");
    line = std::regex_replace(line, spaces, " ");
    const std::size_t begin = line.find_first_not_of(' ');
    return begin == std::string::npos ? text(name)
                                      : line.substr(begin, line.find_last_not_of(' ') - begin + 1);
  }

  Agraph_t* graph_;
  std::vector<Agnode_t*> nodes_;  ///< as the file has them
  std::map<Agnode_t*, int> index_;
  std::vector<int> rank_;          ///< by node: its place in the order
  std::vector<Agraph_t*> holder_;  ///< by node; null: no cluster
  std::map<Agraph_t*, std::vector<Agraph_t*> > inner_;
  std::vector<int> place_;  ///< by node: in the tree
  FoldTree tree_;
  std::vector<NodeLook> looks_;  ///< by node of the tree
};

}  // namespace

PlannedPtr read_dot(const QString& name) {
  const std::string file = name.toStdString();
  const std::string contents = read_file(file);
  auto planned = std::make_shared<PlannedModel>();
  {
    const std::lock_guard lock(reading);
    said.clear();
    agseterrf(take_error);
    agseterr(AGWARN);
    const std::unique_ptr<Agraph_t, Closed> graph(agmemread(contents.c_str()));
    if (graph == nullptr) refuse(file);
    auto [tree, looks] = Reader(graph.get()).read();
    planned->folds = std::make_shared<FoldTree>(std::move(tree));
    planned->looks = std::move(looks);
  }
  Graph empty;
  empty.name = planned->folds->node(0).label;
  empty.source = QFileInfo(name).fileName().toStdString();
  empty.computations.resize(1);
  planned->model = std::make_shared<Model>(Model{std::move(empty), {}});
  planned->plan = std::make_shared<FusionPlan>();
  return planned;
}

#endif

}  // namespace stitchwork::gui
