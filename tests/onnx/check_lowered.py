#!/usr/bin/env python3
"""Operators that are lowered when a model is read: random cases in gopt's interpreter against ONNX Runtime, or ONNX's reference where that lacks one.

usage: check_lowered.py GOPT      exit status 1 where one differs, 77 where onnxruntime is not installed
"""
import subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime as ort
except ImportError:
    sys.exit(77)
from onnx import helper as h, numpy_helper as nh, TensorProto as T
G = sys.argv[1]
counts = {"right": 0, "left": 0, "wrong": 0}
ort.set_default_logger_severity(4)
rng = np.random.default_rng(1)
def case(name, op, ins, attrs={}, opset=17, nout=1, consts={}):
    dt={np.dtype('float32'):T.FLOAT,np.dtype('int64'):T.INT64}
    names=list(ins)+[c for c in consts]
    node=h.make_node(op,[n for n in names],[f'o{i}' for i in range(nout)],**attrs)
    g=h.make_graph([node],'g',[h.make_tensor_value_info(k,dt[v.dtype],v.shape) for k,v in ins.items()],[h.make_tensor_value_info(f'o{i}',T.FLOAT,None) for i in range(nout)],[nh.from_array(v,k) for k,v in consts.items()])
    m=h.make_model(g,opset_imports=[h.make_opsetid('',opset)],ir_version=8 if opset<19 else 10)
    with tempfile.TemporaryDirectory() as t:
        onnx.save(m,t+'/m.onnx')
        try:
            s=ort.InferenceSession(t+'/m.onnx',providers=['CPUExecutionProvider']); want=s.run(None,ins)
        except Exception as e:
            try:
                from onnx.reference import ReferenceEvaluator
                want=ReferenceEvaluator(m).run(None,ins); 
            except Exception as e2: print(name,'no reference',str(e)[:80],str(e2)[:80]); return
        np.savez(t+'/i.npz',**ins)
        r=subprocess.run([G,'run',t+'/m.onnx','--engine','interpreter','-o',t+'/o.npz','--inputs',t+'/i.npz'],capture_output=True,text=True)
        if r.returncode:
            counts["left"] += 1
            return print(name, 'is left:', r.stderr.strip().split('\n')[-1][-110:])
        o=np.load(t+'/o.npz'); got=[o[f'o{i}'] for i in range(nout)]
        ok=all(a.shape==b.shape and np.allclose(a,b,1e-4,1e-5) for a,b in zip(want,got))
        counts['right' if ok else 'wrong'] += 1
        if not ok: print(name, 'differs', [(a.shape, b.shape) for a, b in zip(want, got)])
f=lambda *s: rng.standard_normal(s).astype(np.float32)
for op in (18,21):
    g=2 if op==18 else 6
    case(f'group{op}','GroupNormalization',{'x':f(2,6,3,4),'s':f(g),'b':f(g)},{'num_groups':2,'epsilon':1e-3},op)
case('rms','RMSNormalization',{'x':f(2,3,8),'s':f(8)},{'axis':-1},23)
case('rms1','RMSNormalization',{'x':f(2,3,8),'s':f(3,8)},{'axis':1,'epsilon':.01},23)
case('lpnorm1','LpNormalization',{'x':f(3,4)},{'axis':0,'p':1}); case('lpnorm2','LpNormalization',{'x':f(3,4)},{'axis':-1,'p':2})
case('lppool','LpPool',{'x':f(1,2,7,7)},{'kernel_shape':[3,3],'p':2,'strides':[2,2],'pads':[1,1,1,1]},11); case('lppool1','LpPool',{'x':f(1,2,7)},{'kernel_shape':[2],'p':3},11)
case('lppool18','LpPool',{'x':f(1,2,7,7)},{'kernel_shape':[3,2],'p':1,'dilations':[2,1]},18)
case('glppool','GlobalLpPool',{'x':f(1,2,5,5)},{'p':3})
for al in (0,1):
    case(f'affine2d{al}','AffineGrid',{'t':f(2,2,3)},{'align_corners':al},20,consts={'size':np.array([2,3,4,5],np.int64)})
    case(f'affine3d{al}','AffineGrid',{'t':f(2,3,4)},{'align_corners':al},20,consts={'size':np.array([2,3,4,5,2],np.int64)})
case('crop','CenterCropPad',{'x':f(9,10)},{},18,consts={'s':np.array([5,13],np.int64)}); case('crop2','CenterCropPad',{'x':f(9,10,3)},{'axes':[1,-1]},18,consts={'s':np.array([7,6],np.int64)})
case('attn','Attention',{'q':f(2,3,4,8),'k':f(2,3,6,8),'v':f(2,3,6,10)},{},23); case('attn_m','Attention',{'q':f(2,4,4,8),'k':f(2,2,6,8),'v':f(2,2,6,8),'m':f(4,6)},{'scale':.2},23)
case('attn_c','Attention',{'q':f(1,3,6,8),'k':f(1,3,6,8),'v':f(1,3,6,8)},{'is_causal':1,'softcap':2.0},23); case('attn3','Attention',{'q':f(2,4,24),'k':f(2,6,12),'v':f(2,6,12)},{'q_num_heads':4,'kv_num_heads':2},23)
case('rope','RotaryEmbedding',{'x':f(2,3,4,8),'c':f(2,4,4),'s':f(2,4,4)},{},23); case('rope_i','RotaryEmbedding',{'x':f(2,4,24),'c':f(2,4,4),'s':f(2,4,4)},{'num_heads':3,'interleaved':1},23)
case('rope_p','RotaryEmbedding',{'x':f(2,3,4,8),'c':f(50,2),'s':f(50,2),'p':rng.integers(0,50,(2,4))},{'rotary_embedding_dim':4},23)
e=np.array([],np.float32)
for mode in ('linear','cubic','nearest'):
  for ct in ('half_pixel','asymmetric','align_corners','pytorch_half_pixel','half_pixel_symmetric'):
    for sz in ([1,2,3,9],[1,2,7,4]):
      case(f'resize {mode} {ct} {sz}','Resize',{'x':f(1,2,5,6)},{'mode':mode,'coordinate_transformation_mode':ct},19,consts={'roi':e,'sc':e,'size':np.array(sz,np.int64)})
    case(f'resize {mode} {ct} scales','Resize',{'x':f(1,2,5,6)},{'mode':mode,'coordinate_transformation_mode':ct},19,consts={'roi':e,'sc':np.array([1,1,.6,1.7],np.float32)})
for mode in ('linear','cubic'):
    case(f'resize aa {mode}','Resize',{'x':f(1,2,9,8)},{'mode':mode,'antialias':1},19,consts={'roi':e,'sc':np.array([1,1,.6,.5],np.float32)})
case('cumsum','CumSum',{'x':f(3,7)},{'exclusive':1,'reverse':1},14,consts={'a':np.array(1,np.int64)})
case('einsum','Einsum',{'a':f(2,3,4),'b':f(2,4,5)},{'equation':'bij,bjk->bik'}); case('einsum2','Einsum',{'a':f(3,4,3)},{'equation':'iji->j'}); case('einsum3','Einsum',{'a':f(2,3),'b':f(3,4),'c':f(4)},{'equation':'ij,jk,k->i'})
for pm in ('zeros','border','reflection'):
  for md in ('bilinear','nearest'):
    case(f'grid {pm} {md}','GridSample',{'x':f(1,2,5,6),'g':(1.5*f(1,4,3,2))},{'padding_mode':pm,'mode':md,'align_corners':0},16)
print(counts)
sys.exit(1 if counts["wrong"] or counts["right"] < 60 else 0)
